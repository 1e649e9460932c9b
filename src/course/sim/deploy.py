"""The deployment that a configuration asks for, in the terms of the simulator: seconds and ms become ns here."""

from typing import TYPE_CHECKING

from course.errors import CourseError
from course.sim.config import Config
from course.sim.package import Package
from course.sim.step_time import Engine, engine

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.deployment import Deployment, Fault, Pool

SECOND = 1_000_000_000
MS = 1_000_000
US = 1_000
UNLIMITED = 1 << 20
TRACE_BLOCK = 512
"""Tokens of a block of a workload: KV blocks are parts of it."""


def deployment(config: Config, package: Package, faults: "tuple[Fault, ...]" = ()) -> "Deployment":
    """Raises CourseError for what cannot work together."""
    module, pools, routing = package.module("deployment"), config.pools, config.routing
    if TRACE_BLOCK % pools.block_size:
        raise CourseError(
            f"block-size {pools.block_size} does not divide the {TRACE_BLOCK} tokens of a workload's block: try 64"
        )
    if pools.scheduler == "chunked" and config.load.max_tokens is None:
        raise CourseError("scheduler chunked reserves the longest answer for each request: give --max-tokens")
    prefill_workers, workers = sizes(config)
    decode_tp = (pools.decode_tp if prefill_workers else None) or pools.tp
    built = engine(package, pools, decode_tp)
    rule = None
    if routing.conditional is not None:
        rule = package.module("conditional").Conditional(tokens=routing.conditional, share=routing.conditional_share)
    prefill = None
    if prefill_workers:
        tp = pools.prefill_tp or pools.tp
        prefill = _pool(config, package, engine(package, pools, tp), prefill_workers, tp)
    elif pools.prefill_tp or pools.decode_tp:
        raise CourseError("prefill-tp and decode-tp need two pools: add --prefill-workers and --decode-workers")
    return module.Deployment(
        pool=_pool(config, package, built, workers, decode_tp),
        prefill=prefill,
        routing=_routing(config, package),
        handoff=routing.handoff,
        rule=rule,
        max_tokens=config.load.max_tokens or UNLIMITED,
        transport=module.Transport(
            bytes_per_token=config.links.kv_bytes or built.kv_bytes,
            kv_heads=built.kv_heads,
            bytes_per_s=round(config.links.link_gbps * 1e9) if config.links.link_gbps else round(built.link),
            nics=config.links.nics,
            latency=round(config.links.link_us * US),
            slice_bytes=max(round(config.links.slice_mib * (1 << 20)), 1),
        ),
        control=module.Control(
            lease=round(config.control.lease * SECOND),
            telemetry=max(round(config.control.telemetry * SECOND), 1),
            migrations=config.control.migrations,
        ),
        faults=faults,
    )


def sizes(config: Config) -> tuple[int, int]:
    """Prefill workers, 0 where there is one pool, and the others. Raises CourseError."""
    pools = config.pools
    if (pools.prefill_workers is None) != (pools.decode_workers is None):
        missing = "prefill-workers" if pools.prefill_workers is None else "decode-workers"
        raise CourseError(f"two pools need both prefill-workers and decode-workers: add {missing}")
    if pools.prefill_workers is None:
        return 0, pools.workers or 1
    return pools.prefill_workers, pools.decode_workers


def _pool(config: Config, package: Package, built: Engine, workers: int, gpus: int) -> "Pool":
    pools = config.pools
    return package.module("deployment").Pool(
        cost=built.cost,
        workers=workers,
        gpus=gpus,
        scheduler=pools.scheduler,
        max_num_seqs=pools.max_num_seqs,
        max_num_batched_tokens=pools.max_num_batched_tokens,
        chunk=pools.chunk,
        block_size=pools.block_size,
        kv_blocks=built.kv_blocks,
        start_time=round(pools.start_time * SECOND),
    )


def _routing(config: Config, package: Package) -> object:
    chosen = config.routing
    weights = package.module("routing").CostConfig(
        chosen.credit,
        chosen.decay,
        chosen.prefill_scale,
        chosen.active,
        shared=chosen.fetch_credit if chosen.fetch else 0.0,
    )
    if chosen.fetch and chosen.router != "kv-aware":
        raise CourseError(f"fetch needs to know who has what: use --router kv-aware, not {chosen.router}")
    if chosen.sync_ms < 0 and chosen.sync_ms != -1:
        raise CourseError(f"sync-ms {chosen.sync_ms:g} is neither -1 (never) nor at least 0")
    return package.module("deployment").Routing(
        policy=chosen.router,
        decode_policy=chosen.decode_router or chosen.router,
        cost=weights,
        temperature=chosen.temperature,
        approximate=chosen.approximate,
        fetch=chosen.fetch,
        routers=chosen.routers,
        sync=None if chosen.sync_ms < 0 else round(chosen.sync_ms * MS),
        busy_prefill_tokens=chosen.busy_prefill_tokens,
        overload_blocks=chosen.overload_blocks,
        event_delay=round(chosen.event_delay_ms * MS),
    )
