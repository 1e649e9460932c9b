"""Pictures of a class, drawn with Matplotlib, each as SVG and PNG: equal reports give equal files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from course.book.style import LIGHT, settings
from course.classroom.report import ClassReport, MistakeLine, SumLine

KINDS = (("done", "done"), ("partly", "partly"), ("failing", "failing"), ("todo", "not done"))
_COLOURS = (LIGHT.series[2], "#9ccfb6", LIGHT.series[1], "#d5dae3")
_BINS = 20
_MOST_MISTAKES = 15
_ROW = 0.3


def draw(folder: Path, report: ClassReport) -> Path:
    """All plots; those that an earlier run left are removed first. Returns the folder. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("*.svg"), *folder.glob("*.png")):
        old.unlink()
    _scores(folder / "scores", report)
    _stacked(folder / "days", report.days, "Progress by day", report.handed_in)
    weeks = sorted({_week(task.key) for task in report.tasks}, key=int)
    for week in weeks:
        ending = f"-week-{week}" if len(weeks) > 1 else ""
        tasks = [task for task in report.tasks if _week(task.key) == week]
        _stacked(folder / f"tasks{ending}", tasks, f"Week {week}: how far students came in each task", report.handed_in)
        mistakes = [mistake for mistake in report.mistakes if _week(mistake.key) == week]
        if mistakes:
            _mistakes(folder / f"mistakes{ending}", mistakes, f"Week {week}: likely mistakes that the tests named")
    return folder


@contextmanager
def _picture(path: Path, height: float, title: str) -> Iterator[Axes]:
    """Axes to draw in, 8 inches wide; written at the end, without a date."""
    with settings(LIGHT):
        figure = Figure(figsize=(8, height), layout="constrained", facecolor=LIGHT.paper)
        figure.suptitle(title, x=0.01, ha="left", fontsize=13)
        yield figure.subplots()
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(path.with_suffix(".png"), dpi=150)


def _scores(path: Path, report: ClassReport) -> None:
    """How many students have how many points."""
    points = [line.final for line in report.students if line.submission]
    most = report.max_points or 1.0
    with _picture(path, 3.6, f"{_short(report.title, 50)}: points of {report.handed_in} submissions") as axes:
        axes.hist(points, bins=np.linspace(0, most, _BINS + 1), color=LIGHT.series[0], rwidth=0.92)
        axes.set(xlabel=f"points of {report.max_points:g}", ylabel="students", xlim=(0, most))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        for name, value, style in (("mean", report.mean, "--"), ("median", report.median, ":")):
            axes.axvline(value, color=LIGHT.ink, linestyle=style, linewidth=1.5, label=f"{name} {value:g}")
        axes.legend(loc="best")


def _stacked(path: Path, rows: Sequence[SumLine], title: str, students: int) -> None:
    """Horizontal bars of students, the first row on top."""
    with _picture(path, 1.5 + _ROW * len(rows), title) as axes:
        places = np.arange(len(rows))
        left = np.zeros(len(rows))
        for (kind, name), colour in zip(KINDS, _COLOURS, strict=True):
            counts = np.array([getattr(row, kind) for row in rows])
            bars = axes.barh(places, counts, left=left, color=colour, label=name, height=0.78)
            text = LIGHT.ink if kind in ("partly", "todo") else LIGHT.paper
            axes.bar_label(bars, [str(c) if c else "" for c in counts], label_type="center", color=text, fontsize=9)
            left += counts
        axes.set_yticks(places, [f"{row.key}  {_short(row.title)}" for row in rows])
        axes.set(
            xlabel=f"students, of {students} who handed in", xlim=(0, max(students, 1)), ylim=(len(rows) - 0.5, -0.5)
        )
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(KINDS), borderaxespad=0.2)
        axes.tick_params(axis="y", length=0)


def _mistakes(path: Path, mistakes: Sequence[MistakeLine], title: str) -> None:
    """The most common ones, in the order of the course: each as a text above its bar."""
    chosen = sorted(mistakes, key=lambda mistake: -mistake.students)[:_MOST_MISTAKES]
    shown = [mistake for mistake in mistakes if mistake in chosen]
    with _picture(path, 1.3 + 1.5 * _ROW * len(shown), title) as axes:
        places = np.arange(len(shown))
        bars = axes.barh(places, [m.students for m in shown], color=LIGHT.series[1], height=0.3)
        axes.bar_label(bars, padding=4, fontsize=10)
        for place, mistake in zip(places, shown, strict=True):
            text = _short(f"{mistake.title}: {mistake.mistake}", 104)
            axes.annotate(text, (0, place - 0.17), (3, 2), textcoords="offset points", va="bottom", fontsize=9)
        axes.set_yticks(places, [mistake.key for mistake in shown])
        axes.set(xlabel="students", ylim=(len(shown) - 0.6, -0.7))
        axes.set_xlim(0, max(5, 1.08 * max(mistake.students for mistake in shown)))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.tick_params(axis="y", length=0)


def _week(key: str) -> str:
    return key.partition(".")[0]


def _short(text: str, most: int = 34) -> str:
    return shorten(text, most, placeholder=" ...").replace("$", r"\$")
