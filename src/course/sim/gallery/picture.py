"""A scenario's plot: the broken policy above, the repaired one below, on the same axes."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course.book.style import LIGHT, Theme, settings
from course.sim.gallery.scenario import Outcome, Scenario, find
from course.sim.package import Package


def draw(scenario: Scenario, broken: Outcome, repaired: Outcome, theme: Theme = LIGHT) -> Figure:
    """The figure. Its titles say what the policies do."""
    figure = Figure(figsize=(5.7, 4.2), layout="constrained")
    upper, lower = figure.subplots(2, sharex=True, sharey=True)
    _panel(upper, scenario, broken, theme.series)
    _panel(lower, scenario, repaired, theme.series)
    upper.set_title(f"broken: {scenario.broken}", loc="left", fontsize=9)
    lower.set_title(f"repaired: {scenario.repaired}", loc="left", fontsize=9)
    lower.set_xlabel(scenario.x)
    return figure


def _panel(axes: Axes, scenario: Scenario, outcome: Outcome, colors: Sequence[str]) -> None:
    """All lines of an outcome."""
    width = 0.8 / len(outcome.lines)
    for place, (label, (xs, ys)) in enumerate(outcome.lines.items()):
        look = {"label": label, "color": colors[place % len(colors)]}
        if scenario.kind == "bars":
            axes.bar([x + place * width for x in xs], ys, width, **look)
        else:
            axes.plot(xs, ys, drawstyle="steps-post" if scenario.kind == "steps" else "default", **look)
    if len(outcome.lines) > 1:
        axes.legend(fontsize=8, loc="best")
    axes.set_ylabel(scenario.y, fontsize=10)


def save(path: Path, scenario: Scenario, broken: Outcome, repaired: Outcome) -> None:
    """Write the figure as SVG: equal runs, equal files. Raises OSError."""
    with settings(LIGHT):
        figure = draw(scenario, broken, repaired)
        figure.savefig(path, facecolor=LIGHT.paper, metadata={"Date": None})


@cache
def _played(name: str) -> tuple[Scenario, Outcome, Outcome]:
    scenario, cluster = find(name), Package("tiny_llm_ref").module
    return scenario, scenario.play(cluster, False), scenario.play(cluster, True)


def of_book(name: str, theme: Theme) -> Figure:
    """The figure of a scenario by its name, as the reference plays it."""
    return draw(*_played(name), theme)
