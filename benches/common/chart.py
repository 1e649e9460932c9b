"""Plots of benchmark results, in the book's light theme. Needs matplotlib, which is in the dev group."""

from matplotlib.figure import Figure

from course.book.style import LIGHT, settings
from course.timing import Spread


def bars(groups: dict[str, dict[str, Spread]], label: str) -> Figure:
    """A panel for each group, with a horizontal bar for each name; the thin line goes from least to most."""
    with settings(LIGHT):
        height = 0.9 + 0.34 * max(len(group) for group in groups.values())
        figure = Figure(figsize=(7, height * len(groups)), layout="constrained", facecolor=LIGHT.paper)
        panels = figure.subplots(len(groups), 1, squeeze=False)[:, 0]
        for axes, (title, group) in zip(panels, groups.items(), strict=True):
            names = list(group)[::-1]
            spreads = [group[name] for name in names]
            middle = [spread.median for spread in spreads]
            ends = [[s.median - s.least for s in spreads], [s.most - s.median for s in spreads]]
            colors = [LIGHT.series[i % len(LIGHT.series)] for i in range(len(names))][::-1]
            axes.barh(names, middle, xerr=ends, color=colors, ecolor=LIGHT.ink, height=0.6)
            axes.set_title(title, loc="left")
        panels[-1].set_xlabel(label)
        return figure


def roofline(bandwidth: float, flops: float, marks: dict[str, float]) -> Figure:
    """FLOP/s that are possible at each intensity, FLOP per byte, with a dot for each of `marks`."""
    with settings(LIGHT):
        figure = Figure(figsize=(7, 4.2), layout="constrained", facecolor=LIGHT.paper)
        axes = figure.subplots()
        ridge = flops / bandwidth
        ends = [0.1, ridge, max(10 * ridge, 8 * max(marks.values()))]
        axes.loglog(ends, [min(flops, bandwidth * x) / 1e9 for x in ends], color=LIGHT.ink)
        for (name, x), color in zip(marks.items(), LIGHT.series, strict=False):
            y = min(flops, bandwidth * x) / 1e9
            axes.plot([x], [y], "o", color=color)
            axes.annotate(name, (x, y), (6, -14), textcoords="offset points", color=color)
        axes.set(xlabel="intensity, FLOP per byte", ylabel="GFLOP/s, float32")
        return figure
