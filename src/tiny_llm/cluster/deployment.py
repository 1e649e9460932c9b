"""What is deployed: pools of engines, how requests are routed, how KV moves, who scales, and what goes wrong.

Plain values, all times in ns. Nothing here does anything: `simulate` reads it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from .conditional import Rule
from .cost import StepCost
from .routing import CostConfig

SECOND = 1_000_000_000
PolicyName = Literal["random", "round-robin", "least-loaded", "power-of-two", "kv-aware"]
SchedulerName = Literal["mixed", "chunked", "prefill-first"]
Handoff = Literal["pull", "push", "bootstrap"]


# ANCHOR: pool
@dataclass(frozen=True)
class Pool:
    """Equal engines.

    workers: at the start. cost: how long their steps take. gpus: of one worker, its tensor-parallel size.
    max_num_seqs: requests in a batch. max_num_batched_tokens: tokens in a batch. chunk: prompt tokens of one request in
    a batch, None for no limit but the batch's. block_size: tokens of a KV block. kv_blocks: of one worker.
    start_time: ns from the decision for one more worker until it serves.
    """

    cost: StepCost
    workers: int = 1
    gpus: int = 1
    scheduler: SchedulerName = "mixed"
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    chunk: int | None = None
    block_size: int = 64
    kv_blocks: int = 16_384
    max_len: int = 1 << 20
    start_time: int = 30 * SECOND
    # ANCHOR_END: pool


@dataclass(frozen=True)
class Routing:
    """How workers are chosen.

    policy: for every request, or in two stages for the prompt; decode_policy: for the answer in two stages.
    cost: weights of the KV-aware one. temperature: 0 takes the cheapest. approximate: guess what is cached from own
    decisions, without events. fetch: take cached blocks from the worker that has most of them. routers: front ends that
    choose on their own; sync: ns until they hear of each other, None for never. busy_prefill_tokens, overload_blocks:
    limits of `RouterConfig`. event_delay: ns from a cache to a router.
    """

    policy: PolicyName = "round-robin"
    decode_policy: PolicyName = "round-robin"
    cost: CostConfig = field(default_factory=CostConfig)
    temperature: float = 0.0
    approximate: bool = False
    fetch: bool = False
    routers: int = 1
    sync: int | None = 0
    busy_prefill_tokens: int | None = None
    overload_blocks: int | None = None
    event_delay: int = 0


@dataclass(frozen=True)
class Transport:
    """How KV moves between workers.

    bytes_per_token: of KV, all heads together; kv_heads: how many. bytes_per_s: of one NIC. nics: of a worker. latency:
    ns of each message, and of the first byte. slice_bytes: parts in which a transfer is spread over several NICs.
    """

    bytes_per_token: int = 131_072
    kv_heads: int = 8
    bytes_per_s: int = 50_000_000_000
    nics: int = 1
    latency: int = 5_000
    slice_bytes: int = 64 << 20


@dataclass(frozen=True)
class Control:
    """The control plane. lease: ns that a worker lives after its last renewal. telemetry: ns between two looks at the
    workers, for planners and reports. migrations: how often one request may be moved to another worker."""

    lease: int = 10 * SECOND
    telemetry: int = 5 * SECOND
    migrations: int = 3


# ANCHOR: fault
@dataclass(frozen=True)
class Fault:
    """Something that goes wrong at `time`.

    crash: the worker is gone. partition: nothing reaches or leaves it for `duration`. slow-nic: its NIC has `factor` of
    its rate for `duration`. slow-worker: its steps take 1 / `factor` as long. lost-events: a share `factor` of its KV
    events is lost for `duration`. worker: its name; None for one chosen by the run's seed.
    """

    time: int
    kind: Literal["crash", "partition", "slow-nic", "slow-worker", "lost-events"]
    worker: str | None = None
    duration: int = 0
    factor: float = 0.0
    # ANCHOR_END: fault


# ANCHOR: deployment
@dataclass(frozen=True)
class Deployment:
    """A whole deployment.

    pool: serves requests; with a prefill pool it only decodes, unless a prompt is not worth another worker.
    max_tokens: of an answer, as its client allows; it may end sooner. Who reserves the worst case counts with it.
    rule: which prompts stay on the decode worker, None for none of them.
    """

    pool: Pool
    prefill: Pool | None = None
    routing: Routing = field(default_factory=Routing)
    handoff: Handoff = "pull"
    rule: Rule | None = None
    max_tokens: int = 1 << 20
    transport: Transport = field(default_factory=Transport)
    control: Control = field(default_factory=Control)
    faults: Sequence[Fault] = ()
    # ANCHOR_END: deployment
