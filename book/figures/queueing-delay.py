"""Mean time of a request in units of its service time, over the utilisation of the station, from 0 to 0.95. Four curves
from theory with dots from simulated queues on them. Equal services need 1.5 at half load and 3 at 0.8; exponential ones
2 and 5. Four servers with exponential services stay near 1 up to 0.6 and then rise as steeply. Two stages of half the
service each stay lowest near full load of one stage.
"""

from functools import cache
from random import Random

from matplotlib.figure import Figure

from course.book.style import Theme
from tiny_llm_ref.cluster.queueing import lindley, md1_time, mmc_wait, pipeline_time

SERVICE = 1_000_000
JOBS = 100_000
LOADS = (0.2, 0.4, 0.6, 0.7, 0.8)
CURVES = {
    "M/M/1: exponential services": lambda rho: 1 + mmc_wait(rho, 1, 1),
    "M/D/1: equal services": lambda rho: md1_time(rho, 1),
    "M/M/4: four servers, one queue": lambda rho: 1 + mmc_wait(4 * rho, 1, 4),
    "two stages, as much in all": lambda rho: pipeline_time(rho, 1),
}


@cache
def simulated(kind: str, rho: float) -> float:
    """Mean time of many jobs, in services."""
    rng, servers = Random(7), 4 if kind.startswith("M/M/4") else 1
    time, arrivals, services = 0.0, [], []
    for _ in range(JOBS):
        time += rng.expovariate(rho * servers) * SERVICE
        arrivals.append(round(time))
        services.append(round(rng.expovariate(1) * SERVICE) if kind.startswith("M/M") else SERVICE)
    if kind.startswith("two"):
        half = [SERVICE // 2] * JOBS
        ends = lindley(lindley(arrivals, half), half)
    else:
        ends = lindley(arrivals, services, servers)
    return (sum(ends) - sum(arrivals)) / JOBS / SERVICE


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.subplots()
    loads = [i / 100 for i in range(96)]
    for color, style, (name, curve) in zip(theme.series, ("-", "--", "-.", ":"), CURVES.items(), strict=False):
        axes.plot(loads, [curve(rho) for rho in loads], style, color=color, label=name)
        axes.plot(LOADS, [simulated(name, rho) for rho in LOADS], "o", color=color, markersize=4)
    axes.set(xlabel="utilisation of one server with all of the service", ylabel="mean time, in services", ylim=(0, 10))
    axes.legend(fontsize=9, loc="upper left")
    return figure
