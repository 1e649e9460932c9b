"""Pictures of many runs: what meets the SLOs at which rate, which ratio of pools, what a user's speed costs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes

from course.book.style import LIGHT
from course.sim.plots import picture
from course.sim.report import Json
from course.sim.sweep import Point, text

LOADS = ("rate", "speed-up", "concurrency", "sessions")
"""Options that say how much arrives: what a curve runs along."""
TARGET = 0.9
Series = dict[str, list[tuple[Point, Json]]]


def draw_sweep(folder: Path, points: Sequence[Point], reports: Sequence[Json]) -> None:
    """The pictures that this sweep has points for. Raises OSError."""
    pairs, keys = list(zip(points, reports, strict=True)), list(points[0].swept)
    load = next((key for key in LOADS if key in keys), None)
    with picture(folder / "cost-of-speed.svg") as (axes,):
        _speed(axes, _series(pairs, {load}))
    if load is not None and reports[0]["goodput"] is not None:
        with picture(folder / "attainment.svg") as (axes,):
            for number, (name, mine) in enumerate(_series(pairs, {load}).items()):
                rates = [point.swept[load] for point, _ in mine]
                _attainment(axes, rates, [one for _, one in mine], name, LIGHT.series[number % len(LIGHT.series)])
            _target(axes, TARGET, load)
    if {"prefill-workers", "decode-workers"} <= set(keys):
        _ratios(folder / "ratio.svg", pairs)


def draw_goodput(folder: Path, reports: Mapping[float, Json], best: float, target: float) -> None:
    """`attainment.svg` of a search. Raises OSError."""
    with picture(folder / "attainment.svg") as (axes,):
        rates = sorted(reports)
        _attainment(axes, rates, [reports[rate] for rate in rates], "SLOs met", LIGHT.series[0])
        if best:
            axes.axvline(best, color=LIGHT.series[1], linestyle="--")
            axes.text(best, 0.02, f" {best:.3g} requests/s", color=LIGHT.series[1])
        _target(axes, target, "rate")


def _series(pairs: Sequence[tuple[Point, Json]], along: set[str | None]) -> Series:
    """The points by all that was swept but `along`."""
    found: Series = {}
    for point, numbers in pairs:
        name = ", ".join(f"{key} {text(value)}" for key, value in point.swept.items() if key not in along)
        found.setdefault(name, []).append((point, numbers))
    return found


def _attainment(axes: Axes, rates: Sequence[float], reports: Sequence[Json], name: str, color: str) -> None:
    shares = [one["goodput"]["attainment"] for one in reports]
    axes.plot(rates, shares, marker="o", color=color, label=name or None)


def _target(axes: Axes, target: float, load: str) -> None:
    axes.axhline(target, color=LIGHT.series[-1], linestyle=":")
    axes.text(0.01, target, f"{target:.0%}", va="bottom", transform=axes.get_yaxis_transform(), color=LIGHT.series[-1])
    unit = {"rate": "rate, requests/s"}.get(load, load)
    axes.set(xlabel=unit, ylabel="share that meets all SLOs", ylim=(0, 1.05), xlim=(0, None))
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small")


def _speed(axes: Axes, series: Series) -> None:
    """Throughput per GPU against tokens/s of a user."""
    for number, (name, mine) in enumerate(series.items()):
        found = [one["throughput"] for _, one in mine if one["throughput"]["tokens_per_s_per_user"] is not None]
        xs = [one["tokens_per_s_per_user"] for one in found]
        ys = [one["output_tokens_per_s_per_gpu"] for one in found]
        axes.plot(xs, ys, marker="o", color=LIGHT.series[number % len(LIGHT.series)], label=name or None)
    axes.set(
        xlabel="tokens/s of a user (1 / mean TPOT)", ylabel="output tokens/s per GPU", xlim=(0, None), ylim=(0, None)
    )
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small")


def _ratios(path: Path, pairs: Sequence[tuple[Point, Json]]) -> None:
    """Latencies and throughput of each ratio of prefill to decode workers."""
    sizes = {"prefill-workers", "decode-workers"}
    names = list(dict.fromkeys(_ratio(point) for point, _ in pairs))
    good = pairs[0][1]["goodput"] is not None
    last = ("goodput", "requests_per_s_per_gpu") if good else ("throughput", "output_tokens_per_s_per_gpu")
    panels = {
        "mean TTFT, ms": ("ttft_ms", "mean"),
        "mean TPOT, ms": ("tpot_ms", "mean"),
        "goodput per GPU, requests/s" if good else "output tokens/s per GPU": last,
    }
    with picture(path, columns=3, size=(10, 3.4)) as axes:
        for panel, (label, (group, key)) in zip(axes, panels.items(), strict=True):
            for number, (name, mine) in enumerate(_series(pairs, sizes).items()):
                found = [(_ratio(point), one[group][key]) for point, one in mine if one[group] is not None]
                places = [names.index(ratio) for ratio, _ in found]
                color = LIGHT.series[number % len(LIGHT.series)]
                panel.plot(places, [value for _, value in found], marker="o", color=color, label=name or None)
            panel.set(xlabel="prefill : decode workers", title=label, ylim=(0, None))
            panel.set_xticks(range(len(names)), names)
        if axes[0].get_legend_handles_labels()[0]:
            axes[0].legend(fontsize="small")


def _ratio(point: Point) -> str:
    return f"{point.swept['prefill-workers']}:{point.swept['decode-workers']}"
