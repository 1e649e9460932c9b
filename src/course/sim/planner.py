"""The planner that a configuration names, in the terms of the package."""

from typing import TYPE_CHECKING

from course.errors import CourseError
from course.sim.config import Config
from course.sim.deploy import SECOND
from course.sim.package import Package
from course.sim.report import objective_of

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.deployment import Deployment
    from tiny_llm_ref.cluster.planner import ClassicPlanner
    from tiny_llm_ref.cluster.planner_loop import PlannerLoop
    from tiny_llm_ref.cluster.vote import PoolVoter

BY_TRAFFIC = {"classic": "ClassicPlanner", "throughput": "ThroughputPlanner"}
THRESHOLDS = {"thresholds": "throughput", "latency-thresholds": "latency"}
NAMES = (*BY_TRAFFIC, "load", *THRESHOLDS)


def planner(config: Config, package: Package, built: "Deployment") -> "PlannerLoop | None":
    """None where nobody plans. Raises CourseError."""
    if config.control.planner is None:
        return None
    names = config.control.planner.split("+")
    if unknown := next((name for name in names if name not in NAMES), None):
        raise CourseError(f"no planner {unknown!r}: choose from {', '.join(NAMES)}, or two joined with +")
    traffic = [name for name in names if name in BY_TRAFFIC]
    others = [name for name in names if name not in BY_TRAFFIC]
    if len(traffic) > 1 or len(others) > 1:
        raise CourseError(f"planner {config.control.planner}: at most one of {', '.join(BY_TRAFFIC)}, and one other")
    module, actuation = package.module("planner_loop"), _actuation(config, package, built)
    throughput = _by_traffic(config, package, built, traffic[0]) if traffic else None
    load = _by_load(config, package, others[0]) if others else None
    return module.PlannerLoop(actuation, throughput, load, round(config.control.scale_interval * SECOND))


def _actuation(config: Config, package: Package, built: "Deployment") -> object:
    module, control = package.module("actuation"), config.control
    pools = {"worker": built.pool} if built.prefill is None else {"prefill": built.prefill, "decode": built.pool}
    if large := next((name for name, pool in pools.items() if pool.workers > control.max_workers), None):
        raise CourseError(f"{pools[large].workers} {large} workers exceed max-workers {control.max_workers}: raise it")
    now = sum(pool.workers * pool.gpus for pool in pools.values())
    budget = control.max_gpus or 2 * now
    if budget < now:
        raise CourseError(f"max-gpus {budget} is less than the {now} GPUs at the start: raise it, or start with fewer")
    limits = {name: module.Limit(pool.gpus, 1, control.max_workers) for name, pool in pools.items()}
    return module.Actuation(limits, budget, control.scale_step, round(control.scale_patience * SECOND))


def _by_traffic(config: Config, package: Package, built: "Deployment", name: str) -> "ClassicPlanner":
    if built.prefill is None:
        raise CourseError(f"planner {name} sizes two pools: add --prefill-workers and --decode-workers")
    _check_goals(config, name)
    kv_tokens = built.pool.kv_blocks * built.pool.block_size
    gpus = (built.prefill.gpus, built.pool.gpus)
    profile = package.module("profile").measure(built.prefill.cost, built.pool.cost, kv_tokens, gpus=gpus)
    return getattr(package.module("planner"), BY_TRAFFIC[name])(profile, objective_of(config, package))


def _by_load(config: Config, package: Package, name: str) -> "PoolVoter":
    if name in THRESHOLDS:
        return package.module("threshold").ThresholdPlanner(THRESHOLDS[name], config.control.scale_context)
    _check_goals(config, name)
    batch = config.pools.max_num_batched_tokens
    return package.module("load_planner").LoadPlanner(objective_of(config, package), max_batched_tokens=batch)


def _check_goals(config: Config, name: str) -> None:
    if config.goals.slo_ttft_ms is None or config.goals.slo_tpot_ms is None:
        raise CourseError(f"planner {name} needs objectives: add --slo-ttft-ms and --slo-tpot-ms")
