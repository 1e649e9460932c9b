"""The highest rate that a deployment serves well enough, by bisection over whole runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from course.errors import CourseError
from course.sim.config import Config
from course.sim.option import Value
from course.sim.package import Package
from course.sim.report import Json

DOUBLINGS = 20
HALVINGS = 10


@dataclass
class Search:
    """Runs at several rates. measure(speed-up or rate) gives a report. reports: by rate, in the order of the runs."""

    measure: Callable[[float], Json]
    reports: dict[float, Json] = field(default_factory=dict)

    def attained(self, rate: float) -> float:
        """The share of requests that meet all objectives at this rate."""
        if rate not in self.reports:
            self.reports[rate] = self.measure(rate)
        return self.reports[rate]["goodput"]["attainment"]

    def bracket(self, start: float, target: float) -> tuple[float, float]:
        """A rate that is fine, and twice as much that is not: doubles or halves from `start`. Raises CourseError."""
        low, factor = start, 2.0 if self.attained(start) >= target else 0.5
        for _ in range(DOUBLINGS if factor > 1 else HALVINGS):
            next_rate = low * factor
            if (self.attained(next_rate) >= target) != (factor > 1):
                return min(low, next_rate), max(low, next_rate)
            low = next_rate
        if factor > 1:
            raise CourseError(f"still {target:.0%} at {low:g} requests/s: give more --requests, tighter SLOs or --high")
        raise CourseError(f"less than {target:.0%} even at {low:g} requests/s: relax the SLOs, or give a lower --rate")


def rated(chosen: Mapping[str, Value], package: Package) -> tuple[Callable[[float], dict[str, Value]], float]:
    """How to ask for a rate, and the rate to begin with. Raises CourseError where the load has none."""
    from course.sim.workload import workload

    config = Config.of(chosen)
    if config.load.concurrency is not None:
        raise CourseError("users who wait have no rate of their own: leave --concurrency out")
    goals = config.goals
    if (goals.slo_ttft_ms, goals.slo_tpot_ms, goals.slo_e2e_ms) == (None, None, None):
        raise CourseError("goodput needs an objective: give --slo-ttft-ms, --slo-tpot-ms or --slo-e2e-ms")
    if config.load.trace is None:
        return lambda rate: {**chosen, "rate": rate}, config.load.rate
    arrivals = workload(replace(config, load=replace(config.load, speed_up=1.0)), package).arrivals
    span = (arrivals[-1].time_ns - arrivals[0].time_ns) / 1e9
    if not span:
        raise CourseError(f"all requests of {config.load.trace} come at once: they have no rate")
    own = (len(arrivals) - 1) / span
    return lambda rate: {**chosen, "speed-up": rate / own}, own * config.load.speed_up
