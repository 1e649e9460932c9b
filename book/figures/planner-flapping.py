"""Workers of a decode pool over twenty minutes of constant load, in two panels. Left: 1,100 KV blocks in use, engines
of 1,000. Thresholds alone go up to two workers and down to one for ever; with a look at what would be left after going
down, the pool stays at two. Right: 3,000 blocks, five new engines whose first half minute is ten times slower. With
their cold samples the load planner goes up to seven and stays at six; without them it stays at five.
"""

from dataclasses import dataclass

from matplotlib.figure import Figure

from course.book.style import Theme
from course.cluster_case.pools import SECOND, TICK, Pools
from tiny_llm_ref.cluster import observation
from tiny_llm_ref.cluster.actuation import Actuation, Limit
from tiny_llm_ref.cluster.goodput import Objective
from tiny_llm_ref.cluster.load_planner import LoadPlanner
from tiny_llm_ref.cluster.planner_loop import PlannerLoop
from tiny_llm_ref.cluster.threshold import ThresholdPlanner
from tiny_llm_ref.cluster.vote import PoolVoter, Vote

MS = SECOND // 1000
OBJECTIVE = Objective(ttft=500 * MS, tpot=40 * MS)


class Naive(ThresholdPlanner):
    """Down if all are below the threshold, whatever comes then."""

    def decode(self, engines: tuple[observation.EngineLoad, ...]) -> Vote:
        """Without the look ahead."""
        uses = [engine.kv_used / engine.kv_total for engine in engines]
        if any(use > self.limits.decode_up for use in uses):
            return Vote.UP
        return Vote.DOWN if len(uses) > 1 and all(use < self.limits.decode_down for use in uses) else Vote.STAY


@dataclass
class Scene:
    """A load of `blocks`, on engines whose steps are ten times slower for half a minute if `cold`."""

    blocks: int
    count: int
    cold: bool

    def run(self, planner: PoolVoter) -> tuple[list[float], list[int]]:
        """Minutes, and workers wanted."""
        pools = Pools({"decode": self.count}, age=0 if self.cold else 3600 * SECOND)
        loop = PlannerLoop(Actuation({"decode": Limit()}, 16, step=1, patience=60 * SECOND), load=planner)
        times, counts = [], []
        for tick in range(240):
            traffic = observation.Traffic(TICK, 10, 1000.0, 100.0)
            seen = observation.Observation(traffic, pools.seen(observation, lambda *at, t=tick: self.engine(*at, t)))
            decision = loop.tick(seen, pools.now)
            pools.scale(decision.targets if decision else {})
            times.append(pools.now / SECOND / 60)
            counts.append(pools.groups["decode"].wanted)
            pools.pass_time()
        return times, counts

    def engine(self, _: str, count: int, age: int, tick: int) -> dict[str, object]:
        """What an engine shows: its part of the load, which trembles a little."""
        used = round(self.blocks * (1 + 0.004 * (tick * 7 % 5 - 2))) // count
        time = (5 + 0.05 * used) * MS * (10 if self.cold and age < 30 * SECOND else 1)
        return {"kv_used": used, "kv_total": 1000, "samples": (observation.StepSample(age, 0, used, time),)}


def scenes() -> list[tuple[str, Scene, dict[str, PoolVoter]]]:
    """Title, scene and planners of each panel."""
    guarded = {"thresholds alone": Naive("throughput", 8192), "with a look ahead": ThresholdPlanner("throughput", 8192)}
    warm = {"cold samples taken": LoadPlanner(OBJECTIVE, warm_up=0), "left out": LoadPlanner(OBJECTIVE)}
    return [
        ("1,100 blocks, engines of 1,000", Scene(1100, 1, False), guarded),
        ("five new engines, enough of them", Scene(3000, 5, True), warm),
    ]


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure = Figure(figsize=(8.4, 3.0), layout="constrained")
    for axes, (title, scene, planners) in zip(figure.subplots(1, 2), scenes(), strict=True):
        for color, style, (name, planner) in zip(theme.series[1::-1], ("-", "--"), planners.items(), strict=True):
            axes.step(*scene.run(planner), where="post", color=color, linestyle=style, label=name)
        axes.set(xlabel="minutes", ylabel="decode workers", title=title, ylim=(0, None))
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.legend(fontsize=9, loc="lower right")
    return figure
