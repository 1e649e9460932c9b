"""Two lines of time, a process above and the registry below, with a lease of 4 seconds. Each renewal is an arrow down,
each answer one up. Two renewals are answered, then the link is cut, and the third never arrives. The process stops four
seconds after the last answered renewal was sent. The registry forgets it four seconds after that renewal came, a little
later: at no time does the process serve while the registry has forgotten it.
"""

import asyncio

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme, arrow, canvas
from course.cluster_case.scene import MS, Imported, Scene

SECOND = 1000 * MS
LATENCY, CUT = 300 * MS, 5 * SECOND
LEFT, SCALE, PROCESS, REGISTRY = 1.15, 0.78, 2.05, 0.95


def run() -> dict[str, list[float]]:
    """A real run, in seconds: when renewals were sent and came, and when both ends gave up."""

    async def main(scene: Scene) -> dict[str, list[float]]:
        registry = await scene.open()
        process = scene.discovery("process")
        sent, came = [0], [0]
        await process.start()
        came[0] = registry.next_deadline() - scene.ttl
        ask, renew = process.ask, registry.renew

        async def noted_ask(name: str, **body: object) -> object:
            sent.append(scene.now)
            return await ask(name, **body)

        def noted_renew(lease: int, now: int) -> None:
            came.append(now)
            renew(lease, now)

        process.ask, registry.renew = noted_ask, noted_renew
        scene.simulation.at(CUT, 0, scene.network.cut, "process", "store")
        await asyncio.create_task(process.keep_alive())
        times = {"sent": sent, "came": came, "stops": [scene.now], "forgets": [registry.next_deadline()]}
        return {name: [time / SECOND for time in values] for name, values in times.items()}

    return Scene(Imported("tiny_llm_ref"), latency=LATENCY).run(main)


def at(seconds: float) -> float:
    """Where a time is."""
    return LEFT + seconds * SCALE


def messages(axes: Axes, times: dict[str, list[float]], theme: Theme) -> None:
    """Arrows of what was sent and answered; the last is lost on its way."""
    latency = LATENCY / SECOND
    for sent, came in zip(times["sent"], [*times["came"], None], strict=True):
        if came is None:
            middle = (at(sent + latency / 2), (PROCESS + REGISTRY) / 2)
            arrow(axes, (at(sent), PROCESS), middle, theme.series[4])
            axes.text(middle[0] + 0.06, middle[1], "held by the cut", va="center", fontsize=8.5, color=theme.series[4])
        else:
            arrow(axes, (at(sent), PROCESS), (at(came), REGISTRY), theme.series[0], linewidth=1.2)
            arrow(axes, (at(came), REGISTRY), (at(came + latency), PROCESS), theme.muted, linewidth=1.2)


def belief(axes: Axes, y: float, begin: float, end: float, text: str, color: str, theme: Theme) -> None:
    """A bar: how long one end believes in the lease."""
    bar = Rectangle((at(begin), y), at(end) - at(begin), 0.3, facecolor=theme.soft, edgecolor=color, linewidth=1.6)
    axes.add_patch(bar)
    axes.text(at(begin) + 0.1, y + 0.15, text, va="center", fontsize=8.5)
    axes.plot([at(end)] * 2, [y - 0.12, y + 0.42], color=color, linewidth=2)


def draw(theme: Theme) -> Figure:
    """The figure."""
    times = run()
    stops, forgets = times["stops"][0], times["forgets"][0]
    figure, axes = canvas(at(forgets) + 1.2, 3.35)
    axes.add_patch(Rectangle((at(CUT / SECOND), REGISTRY), at(forgets + 0.6) - at(CUT / SECOND), PROCESS - REGISTRY,
                             facecolor=theme.soft, edgecolor="none"))  # fmt: skip
    axes.text(at(CUT / SECOND) + 0.06, PROCESS - 0.14, "link cut", fontsize=8.5, color=theme.muted, va="center")
    for y, name in ((PROCESS, "process"), (REGISTRY, "registry")):
        axes.plot([at(0), at(forgets + 0.6)], [y, y], color=theme.muted, linewidth=1.2)
        axes.text(at(0) - 0.12, y, name, ha="right", va="center", fontsize=9.5)
    messages(axes, times, theme)
    belief(axes, PROCESS + 0.28, times["sent"][-2], stops, "believes for 4 s from when it sent", theme.series[0], theme)
    belief(
        axes, REGISTRY - 0.62, times["came"][-1], forgets, "believes for 4 s from when it came", theme.series[1], theme
    )
    axes.text(at(stops), PROCESS + 0.83, f"stops at {stops:.1f} s", ha="center", fontsize=9, color=theme.series[0])
    axes.text(at(forgets) + 0.1, REGISTRY - 0.47, f"forgets at {forgets:.1f} s", va="center", fontsize=9,
              color=theme.series[1])  # fmt: skip
    for second in range(int(forgets) + 1):
        axes.text(at(second), 0.08, f"{second} s", ha="center", fontsize=8, color=theme.muted)
    return figure
