"""What can be chosen for a simulation, by group: a group is a TOML table, an option a key of it and a flag.

Knows names, limits and defaults; nothing of simulators.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from course.sim.option import (
    BURSTINESS,
    FLAG,
    Option,
    Value,
    at_least,
    count,
    one_of,
    option,
    options_of,
    positive,
    share,
    words,
)

ROUTERS = ("random", "round-robin", "least-loaded", "power-of-two", "kv-aware")
SECONDS = at_least(0, 10, "S")
MILLISECONDS = at_least(0, 100, "MS")
MANY, TOKENS, ENGINES = 10_000_000, 10_000_000, 10_000
"""Limits of requests and blocks, of prompts, and of pools: above them are slips, and what no memory holds."""


@dataclass(frozen=True)
class Load:
    """What arrives."""

    trace: str | None = option(None, words("FILE"), "replay a trace: Mooncake JSONL or Azure CSV")
    speed_up: float = option(1.0, positive(2), "replay it so many times as fast")
    jitter: bool = option(False, FLAG, "spread its arrivals over their ticks (Mooncake's are rounded to 3 s)")
    requests: int | None = option(None, count(1, 1000, MANY), "how many in all (1000; of a trace: all of it)")
    rate: float = option(8.0, positive(8, least=1e-4), "arrivals per second: requests, or sessions")
    burstiness: float = option(1.0, BURSTINESS, "1: Poisson; below: burstier; inf: evenly spaced (as in vLLM)")
    input_mean: float = option(1024.0, at_least(1, 1024, most=TOKENS), "new prompt tokens of a request, on average")
    input_cv: float = option(0.0, at_least(0, 0.5, most=10), "their standard deviation over the mean (log-normal)")
    output_mean: float = option(128.0, at_least(1, 128, most=TOKENS), "tokens of an answer, on average")
    output_cv: float = option(0.0, at_least(0, 0.5, most=10), "their standard deviation over the mean (log-normal)")
    max_tokens: int | None = option(None, count(1, 4096), "tokens that clients allow an answer (default: no limit)")
    prefixes: int = option(0, count(0, 16, MANY), "system prompts that requests share, 0 for none")
    prefix_tokens: int = option(2048, count(1, 2048, TOKENS), "tokens of a system prompt")
    prefix_zipf: float = option(1.0, at_least(0, 1, most=10), "exponent of their popularity (Zipf), 0 for equal")
    concurrency: int | None = option(None, count(1, 32, MANY), "closed loop: so many users, each waits for its answer")
    sessions: int | None = option(None, count(1, 100, MANY), "conversations of several turns that begin at --rate")
    turns: float = option(4.0, at_least(1, 4, most=10_000), "turns of a session, on average")
    think: float = option(0.0, SECONDS, "seconds from an answer to the next question (exponential)")


@dataclass(frozen=True)
class Pools:
    """Which engines there are."""

    workers: int | None = option(
        None, count(1, 4, ENGINES), "aggregated: engines that do prefill and decode (default 1)"
    )
    prefill_workers: int | None = option(None, count(1, 2, ENGINES), "disaggregated: engines for prompts")
    decode_workers: int | None = option(None, count(1, 2, ENGINES), "disaggregated: engines for answers")
    tp: int = option(1, count(1, 2, 1024), "GPUs of an engine (tensor parallel)")
    prefill_tp: int | None = option(None, count(1, 2, 1024), "GPUs of a prefill engine (default: --tp)")
    decode_tp: int | None = option(None, count(1, 2, 1024), "GPUs of a decode engine (default: --tp)")
    step_time: str | None = option(
        None, words("MODEL"), "mocker, opt-13b-a100, roofline, or a JSON file (mocker; roofline with --model)"
    )
    model: str | None = option(None, words("NAME"), "model of the roofline: qwen3-0.6b to qwen3-32b, qwen3-30b-a3b")
    machine: str | None = option(None, words("NAME"), "its GPU: a100, h100, h200, b200, l40s, rtx-pro-6000")
    scheduler: str = option("mixed", one_of("mixed", "chunked", "prefill-first"), "how an engine fills its batches")
    max_num_seqs: int = option(256, count(1, 256, 65_536), "requests in a batch")
    max_num_batched_tokens: int = option(8192, count(1, 8192), "tokens in a batch")
    chunk: int | None = option(None, count(1, 512), "prompt tokens of one request in a batch (default: no limit)")
    block_size: int = option(64, count(1, 64), "tokens of a KV block")
    kv_blocks: int | None = option(None, count(1, 16384, MANY), "KV blocks of an engine (16384; roofline: what fits)")
    start_time: float = option(30.0, SECONDS, "seconds until a new engine serves")


@dataclass(frozen=True)
class Routing:
    """Who chooses the engine."""

    router: str = option("round-robin", one_of(*ROUTERS), "for each request; in two stages for its prompt")
    decode_router: str | None = option(None, one_of(*ROUTERS), "in two stages: for its answer (default: --router)")
    credit: float = option(1.0, share(1), "kv-aware: what a cached block counts")
    decay: float = option(0.0, at_least(0, 0.5), "kv-aware: how fast that falls for busier workers")
    prefill_scale: float = option(1.0, at_least(0, 1), "kv-aware: weight of prefill blocks against decode blocks")
    active: float = option(0.0, at_least(0, 1), "kv-aware: cost of each active request")
    temperature: float = option(0.0, at_least(0, 0.5), "kv-aware: 0 takes the cheapest, more spreads the choice")
    approximate: bool = option(False, FLAG, "kv-aware: guess what is cached from own choices, without events")
    fetch: bool = option(False, FLAG, "kv-aware: take cached blocks from other workers, all caches are one")
    fetch_credit: float = option(0.9, share(0.9), "with --fetch: what a block counts that another worker has cached")
    routers: int = option(1, count(1, 2, 1024), "routers that choose on their own")
    sync_ms: float = option(0.0, at_least(-1, 100, "MS"), "until they hear of each other, -1 for never")
    busy_prefill_tokens: int | None = option(None, count(1, 65536), "prompt tokens from which a worker is busy")
    overload_blocks: int | None = option(None, count(1, 16384), "active blocks from which requests are refused")
    event_delay_ms: float = option(0.0, MILLISECONDS, "from a cache to the router")
    handoff: str = option("pull", one_of("pull", "push", "bootstrap"), "how KV goes from prefill to decode")
    conditional: int | None = option(None, count(0, 2048), "prompts with fewer new tokens may stay with decode")
    conditional_share: float = option(0.7, positive(0.7), "if less than this part of them is new (1.1: all of them)")


@dataclass(frozen=True)
class Links:
    """How KV travels."""

    link_gbps: float | None = option(None, positive(50), "GB/s of a NIC, each way (50; roofline: the machine's)")
    link_us: float = option(5.0, at_least(0, 5, "US"), "latency in us")
    nics: int = option(1, count(1, 2, 1024), "NICs of a worker")
    slice_mib: float = option(64.0, positive(64, "MIB"), "MiB that one NIC carries at a time")
    kv_bytes: int | None = option(None, count(1, 131072), "bytes of KV of a token (131072; roofline: the model's)")


@dataclass(frozen=True)
class Control:
    """Who watches, who scales, what goes wrong."""

    lease: float = option(10.0, positive(10, "S"), "seconds that a silent worker counts as alive")
    telemetry: float = option(5.0, positive(5, "S", 0.001), "seconds between two looks at the workers")
    migrations: int = option(3, count(0, 3), "how often a request may move to another worker")
    planner: str | None = option(
        None, words("NAME"), "who scales: classic, throughput, load, thresholds, latency-thresholds, or throughput+load"
    )
    max_gpus: int | None = option(None, count(1, 16), "GPUs that it may use (default: twice those at the start)")
    max_workers: int = option(64, count(1, 64), "workers that it may give a pool")
    scale_interval: float = option(180.0, positive(60, "S"), "seconds of traffic that throughput planners look at")
    scale_step: int = option(2, count(1, 2), "workers more or less in one decision")
    scale_patience: float = option(300.0, SECONDS, "seconds without a wish for more before a pool shrinks")
    scale_context: int = option(8192, count(1, 8192), "tokens that threshold planners measure queues by")
    fault: tuple[str, ...] = option(
        (), words("FAULT"), "KIND[:WORKER]@TIME[+DURATION][*FACTOR]: crash:worker-1@30s", True
    )
    fault_rate: tuple[str, ...] = option((), words("FAULT"), "KIND=RATE[+DURATION][*FACTOR]: crash=0.01/s", True)


@dataclass(frozen=True)
class Goals:
    """What is measured, and what is good enough."""

    slo_ttft_ms: float | None = option(None, positive(2000, "MS"), "a request is good with a TTFT of at most so much")
    slo_tpot_ms: float | None = option(None, positive(50, "MS"), "and a TPOT of at most so much")
    slo_e2e_ms: float | None = option(None, positive(10000, "MS"), "and an E2E time of at most so much")
    warm_up: float | None = option(None, SECONDS, "measure from so many seconds on to the last arrival (default: all)")
    seed: int = option(0, count(0, 1), "of all that is random")


@dataclass(frozen=True)
class Config:
    """All groups."""

    load: Load = field(default_factory=Load)
    pools: Pools = field(default_factory=Pools)
    routing: Routing = field(default_factory=Routing)
    links: Links = field(default_factory=Links)
    control: Control = field(default_factory=Control)
    goals: Goals = field(default_factory=Goals)

    @classmethod
    def of(cls, chosen: Mapping[str, Value]) -> "Config":
        """From values by key, defaults for the others."""
        groups = {}
        for group, kind in GROUPS.items():
            mine = [one for one in OPTIONS.values() if one.group == group]
            groups[group] = kind(**{one.name: chosen[one.key] for one in mine if one.key in chosen})
        return cls(**groups)

    def value(self, key: str) -> Value:
        """Of an option."""
        one = OPTIONS[key]
        return getattr(getattr(self, one.group), one.name)


GROUPS: dict[str, type] = {each.name: each.default_factory for each in fields(Config)}
OPTIONS: dict[str, Option] = {one.key: one for name, kind in GROUPS.items() for one in options_of(name, kind)}
