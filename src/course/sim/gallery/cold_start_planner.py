"""A new engine is slow for a while. A planner that learns from it asks for one more, which is slow for a while."""

from collections.abc import Mapping

import numpy as np

from course.sim.gallery.runs import MS, SECOND, Cluster, requests, worker_minutes, workers_over_time
from course.sim.gallery.scenario import Outcome, Scenario

BLOCKS = 2048
COLD, SLOWER = 30 * SECOND, 10.0
"""How long a new engine is cold, and how much longer its steps take (it loads, compiles, captures)."""


def least_squares(cluster: Cluster) -> object:
    """A regression of the textbook, from all samples."""
    regression = cluster("regression")

    class LeastSquares(regression.Regression):
        """Through the middle of all points, however wrong some are."""

        def line(self) -> object:
            """As `Regression.line`."""
            loads, times = zip(*self.points, strict=True) if self.points else ((), ())
            if len(self.points) < self.least or len(set(loads)) < 2:
                return None
            slope, base = np.polyfit(loads, times, 1)
            return regression.Line(float(base), max(0.0, float(slope)))

    return LeastSquares(warm_up=0)


def play(cluster: Cluster, repaired: bool) -> Outcome:
    """A steady load that two workers serve easily; eight may be started."""
    parts, phase = cluster("deployment"), cluster("kernel").Phase.ADMISSION
    objective = cluster("goodput").Objective(ttft=1 * SECOND, tpot=60 * MS)
    planner = cluster("load_planner").LoadPlanner(objective, warm_up=COLD)
    if not repaired:
        planner.prompts, planner.decodes = (least_squares(cluster) for _ in range(2))
    actuation = cluster("actuation").Actuation({"worker": cluster("actuation").Limit(most=8)}, budget=8)
    loop = cluster("planner_loop").PlannerLoop(actuation, load=planner)
    pool = parts.Pool(cluster("cost").OPT_13B_A100, workers=2, kv_blocks=BLOCKS)
    load = requests(cluster, 3, 900, (500, 0.5), (300, 0.5))
    simulator = cluster("simulator").Simulator(
        parts.Deployment(pool, routing=parts.Routing("least-loaded")), load, planner=loop
    )
    join = simulator.front.join

    def join_cold(worker: object) -> None:
        worker.slow(SLOWER)
        simulator.simulation.after(COLD, phase, worker.slow, 1.0)
        join(worker)

    simulator.front.join = join_cold
    run = simulator.simulate()
    times, counts = workers_over_time(run)
    numbers = {
        "most workers": max(counts),
        "decisions to scale": sum(note.kind == "scale" for note in run.notes),
        "worker minutes": worker_minutes(run),
    }
    return Outcome(numbers, {"workers": (times, counts)})


def check(broken: Mapping[str, float], repaired: Mapping[str, float]) -> None:
    """What is enough stays enough."""
    assert repaired["most workers"] == 2 < 6 <= broken["most workers"]
    assert repaired["decisions to scale"] == 0
    assert repaired["worker minutes"] < 0.6 * broken["worker minutes"]


SCENARIO = Scenario(
    title="Workers are started because workers started",
    complaint="Dynamo 12430: steps of cold engines poison the planner's regression, and it scales up for nothing",
    broken="least squares through all steps",
    repaired="median slope, without the first 30 s of an engine",
    play=play,
    check=check,
    y="workers that serve",
    kind="steps",
)
