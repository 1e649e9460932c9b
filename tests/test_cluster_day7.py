"""The reference's planners: long histories, the simulator in the loop, and numbers of papers."""

import importlib.util
import random
from collections.abc import Sequence
from itertools import pairwise
from types import ModuleType

import numpy as np
import pytest

from course.cluster_case.pools import SECOND, TICK, Pools
from course.paths import ROOT
from course.sim.config import Config
from course.sim.execute import execute
from course.sim.package import Package
from course.sim.report import report
from tiny_llm_ref.cluster import observation
from tiny_llm_ref.cluster.actuation import Actuation, Decision, Limit
from tiny_llm_ref.cluster.choose import Sizes, Space, choose
from tiny_llm_ref.cluster.cost import OPT_13B_A100
from tiny_llm_ref.cluster.forecast import Holt
from tiny_llm_ref.cluster.observation import Observation, PoolLoad, Traffic, merged
from tiny_llm_ref.cluster.planner_loop import PlannerLoop
from tiny_llm_ref.cluster.profile import measure
from tiny_llm_ref.cluster.run import Run

ENGINE = {"step-time": "opt-13b-a100", "kv-bytes": 819_200, "block-size": 16, "kv-blocks": 3500, "link-gbps": 300.0}
GOALS = {"slo-ttft-ms": 400.0, "slo-tpot-ms": 40.0, "input-mean": 512.0, "output-mean": 64.0}


def run_of(options: dict[str, object]) -> tuple[Run, float]:
    """A run, and the share of requests that met the objectives."""
    package, config = Package("tiny_llm_ref"), Config.of(ENGINE | GOALS | options)
    run = execute(config, package)
    return run, report(config, package, run)["goodput"]["attainment"]


# Forecasts, intervals, profiles


def forecasts(series: Sequence[float], alpha: float, beta: float) -> list[float]:
    holt, found = Holt(alpha, beta), []
    for value in series:
        holt.add(value)
        found.append(holt.next())
    return found


def test_holt_is_a_constant_an_average_and_a_trend():
    assert Holt().next() == 0
    assert forecasts([3, 1, 4, 1, 5], 1, 0) == [3, 1, 4, 1, 5]
    level = 8.0
    for value, found in zip([2.0, 6.0, 4.0], forecasts([8.0, 2.0, 6.0, 4.0], 0.25, 0)[1:], strict=True):
        level += 0.25 * (value - level)
        assert found == pytest.approx(level)
    line = [10 + 3 * n for n in range(80)]
    assert forecasts(line, 0.5, 0.3)[-1] == pytest.approx(10 + 3 * 80, rel=1e-6)
    assert min(forecasts([100, 50, 10, 0, 0, 0], 0.9, 0.9)) == 0


def test_intervals_become_one():
    parts = [Traffic(5, 3, 100.0, None, 7.0, None, 0.5), Traffic(5), Traffic(10, 1, 500.0, 40.0, 3.0, 2.0, 0.1)]
    assert merged(parts) == Traffic(20, 4, 200.0, 40.0, 6.0, 2.0, pytest.approx(0.4))
    assert merged([Traffic(5), Traffic(6)]) == Traffic(11)


def test_a_profile_is_what_steps_cost():
    profile = measure(OPT_13B_A100, OPT_13B_A100, 56_000)
    assert profile.ttft_at(512) == pytest.approx((18.10 + 0.10191 * 512 + 7.12e-6 * 512**2) * 1e6, abs=1)
    assert profile.prefill_rate(512) == pytest.approx(512e9 / profile.ttft_at(512))
    assert profile.itl_at(1024, 16) == pytest.approx((19.93 + 6.27e-4 * 16 * 1024 + 0.0385 * 16) * 1e6, abs=1)
    assert profile.decode_rate(1024, 25e6) == pytest.approx(max(n * 1e9 / profile.itl_at(1024, n) for n in (1, 2, 4)))
    assert profile.decode_rate(1024, 1.0) == pytest.approx(1e9 / profile.itl_at(1024, 1))


class Told:
    """A planner that counts what it is told."""

    def __init__(self) -> None:
        self.heard: list[Traffic] = []

    def learn(self, seen: Observation) -> None:
        self.heard.append(seen.traffic)

    def targets(self, pools: object = None) -> dict[str, int]:
        return {"decode": 4 + len(self.heard)}


def test_a_loop_thinks_in_intervals_and_learns_while_a_decision_is_pending():
    slow, fast, pools = Told(), Told(), Pools({"decode": 4}, start=10_000 * TICK)
    loop = PlannerLoop(Actuation({"decode": Limit()}, 64), slow, fast, interval=3 * TICK)
    decisions = []
    for _ in range(10):
        seen = Observation(Traffic(TICK, 2, 10.0), pools.seen(observation))
        decisions.append(loop.tick(seen, pools.now))
        pools.scale(decisions[-1].targets if decisions[-1] else {})
        pools.pass_time()
    assert [part.duration for part in slow.heard] == [3 * TICK] * 3
    assert [part.requests for part in slow.heard] == [6] * 3
    assert len(fast.heard) == 10
    assert decisions[0] == Decision(1, {"decode": 5})
    assert decisions[1:] == [None] * 9


# Long histories


def history(seed: int, ticks: int) -> list[tuple[Decision | None, dict[str, PoolLoad], bool]]:
    """Anything is asked for; workers crash, somebody interferes. Returns decision, pools and pending of each tick."""
    rng = random.Random(seed)
    names = ("prefill", "decode", "worker")[: rng.randint(1, 3)]
    limits = {name: Limit(rng.choice([1, 2, 4]), rng.randint(1, 2), rng.randint(3, 9)) for name in names}
    budget = sum(limit.gpus * limit.least for limit in limits.values()) + rng.randint(0, 20)
    ours = Actuation(limits, budget, rng.randint(1, 3), rng.randint(0, 9) * TICK, rng.randint(5, 30) * TICK)
    counts = {name: limit.least for name, limit in limits.items()}
    pools, trace = Pools(counts, rng.randint(0, 9) * TICK, rng.randint(0, 9) * TICK), []
    for _ in range(ticks):
        if rng.random() < 0.02:
            name = rng.choice(names)
            pools.scale({name: rng.randint(limits[name].least, limits[name].most)})
        if rng.random() < 0.02:
            pools.groups[rng.choice(names)].ages[:1] = []
        seen = pools.seen(observation)
        ours.observe(seen, pools.now)
        pending = ours.pending is not None
        decision = ours.decide({name: rng.randint(0, 12) for name in names}, seen, pools.now)
        trace.append((decision, seen, pending))
        pools.scale(decision.targets if decision else {})
        pools.pass_time()
        if decision is not None:
            assert not pending
            assert all(limits[name].least <= n <= limits[name].most for name, n in decision.targets.items())
            assert sum(limits[name].gpus * n for name, n in decision.targets.items()) <= budget
    ended = {decision.number for decision, *_ in trace if decision}
    assert sorted(ended) == list(range(1, len(ended) + 1))
    assert set(ours.outcomes) == ended - ({ours.pending.number} if ours.pending else set())
    return trace


def test_long_histories():
    traces = [history(seed, 150) for seed in range(150)]
    assert sum(decision is not None for trace in traces for decision, *_ in trace) > 1000
    assert any(pool.held > pool.wanted for trace in traces for _, pools, _ in trace for pool in pools.values())


def test_the_least_must_fit():
    with pytest.raises(ValueError, match="take 9 GPUs, the budget is 8: raise it"):
        Actuation({"prefill": Limit(1, 1), "decode": Limit(4, 2)}, 8)


# The simulator in the loop


SMALL = {"rate": 25.0, "requests": 2500, "prefill-workers": 1, "decode-workers": 1}


def last_ttft(run: Run) -> float:
    """Mean seconds of the last tenth."""
    late = list(run.records.values())[-len(run.records) // 10 :]
    return sum(record.ttft for record in late) / len(late) / SECOND


@pytest.mark.parametrize(
    ("planner", "seconds"), [("load", 10), ("classic", 0.4), ("throughput+load", 0.5), ("thresholds", 0.5)]
)
def test_planners_mend_a_deployment_that_is_too_small(planner: str, seconds: float):
    """With one worker in each pool the last prompts wait for half a minute and more."""
    scale = {"planner": planner, "scale-interval": 30.0, "scale-context": 2048, "max-gpus": 12, "start-time": 10.0}
    run, _ = run_of(SMALL | scale)
    decisions = [note for note in run.notes if note.kind == "scale"]
    assert 2 <= len(decisions) <= 24  # one note for each pool
    assert last_ttft(run) < seconds
    started = sum(worker.pool == "prefill" for worker in run.workers.values())
    assert 2 <= started <= 8


def test_a_short_run_flatters():
    load = {"rate": 40.0, "input-cv": 0.5, "output-cv": 0.5, "prefill-workers": 3, "decode-workers": 2}
    assert run_of(load | {"requests": 400})[1] > 0.95
    assert run_of(load | {"requests": 800})[1] < 0.8


def test_the_search_in_the_simulator_is_brute_force():
    space, load = Space((1, 2, 3), (1, 2)), {"rate": 22.0, "requests": 300}

    def attained(sizes: Sizes) -> float:
        return run_of(load | {"prefill-workers": sizes.prefill, "decode-workers": sizes.decode})[1]

    chosen = choose(space, attained)
    every = {Sizes(p, d): attained(Sizes(p, d)) for p in space.prefill for d in space.decode}
    assert chosen.sizes == min((s for s, share in every.items() if share >= 0.9), key=lambda s: (space.gpus(s), s))
    assert chosen.predictions.items() <= every.items()
    assert str(chosen).endswith("of requests will meet the objectives")


# Papers


def figure(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), ROOT / "book" / "figures" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_reuse_pays_where_mooncake_says():
    break_even = figure("reuse-break-even").break_even
    assert round(break_even(8192, 8 * 312e12) / 1e9) == 6
    assert round(break_even(8192, 8 * 989e12) / 1e9) == 19
    rates = [break_even(n, 1e15) for n in np.geomspace(128, 131_072, 20)]
    assert all(later < earlier for earlier, later in pairwise(rates))
