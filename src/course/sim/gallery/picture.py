"""A scenario's plot: the broken policy above, the repaired one below, on the same axes."""

from typing import TYPE_CHECKING

from course.sim.gallery.scenario import Outcome, Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from course.book.style import Theme


def draw(scenario: Scenario, broken: Outcome, repaired: Outcome, theme: "Theme | None" = None) -> "Figure":
    """The figure, in the colours of the book's theme if there is one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.7, 4.2), layout="constrained")
    upper, lower = figure.subplots(2, sharex=True, sharey=True)
    runs = (upper, broken, f"broken: {scenario.broken}"), (lower, repaired, f"repaired: {scenario.repaired}")
    for axes, outcome, name in runs:
        for place, (label, (xs, ys)) in enumerate(outcome.lines.items()):
            color = theme.series[place % len(theme.series)] if theme else f"C{place}"
            if scenario.kind == "bars":
                width = 0.8 / len(outcome.lines)
                axes.bar([x + place * width for x in xs], ys, width, label=label, color=color)
            elif scenario.kind == "steps":
                axes.step(xs, ys, where="post", label=label, color=color)
            else:
                axes.plot(xs, ys, label=label, color=color)
        if len(outcome.lines) > 1:
            axes.legend(fontsize=8, loc="best")
        axes.set_title(name, loc="left", fontsize=9)
        axes.set_ylabel(scenario.y)
    lower.set_xlabel(scenario.x)
    return figure
