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
from course.classroom.report import ClassReport, MistakeLine, TaskLine

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
    _days(folder / "days", report)
    weeks = sorted({_week(task.key) for task in report.tasks}, key=int)
    for week in weeks:
        ending = f"-week-{week}" if len(weeks) > 1 else ""
        _tasks(folder / f"tasks{ending}", [task for task in report.tasks if _week(task.key) == week], report)
        mistakes = [mistake for mistake in report.mistakes if _week(mistake.key) == week]
        if mistakes:
            _mistakes(folder / f"mistakes{ending}", mistakes, report)
    return folder


@contextmanager
def _picture(path: Path, height: float) -> Iterator[Axes]:
    """Axes to draw in, 8 inches wide; written at the end, without a date."""
    with settings(LIGHT):
        figure = Figure(figsize=(8, height), layout="constrained", facecolor=LIGHT.paper)
        yield figure.subplots()
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(path.with_suffix(".png"), dpi=150)


def _scores(path: Path, report: ClassReport) -> None:
    """How many students have how many points."""
    points = [line.final for line in report.students if line.submission]
    most = report.max_points or 1.0
    with _picture(path, 3.6) as axes:
        axes.hist(points, bins=np.linspace(0, most, _BINS + 1), color=LIGHT.series[0], rwidth=0.92)
        axes.set(xlabel=f"points of {report.max_points:g}", ylabel="students", xlim=(0, most))
        axes.set_title(f"{report.title}: points of {report.handed_in} students who handed in", loc="left")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        for name, value, style in (("mean", report.mean, "--"), ("median", report.median, ":")):
            axes.axvline(value, color=LIGHT.ink, linestyle=style, linewidth=1.5, label=f"{name} {value:g}")
        axes.legend(loc="upper left")


def _tasks(path: Path, tasks: Sequence[TaskLine], report: ClassReport) -> None:
    rows = [(f"{task.key}  {_short(task.title)}", [getattr(task, kind) for kind, _ in KINDS]) for task in tasks]
    _stacked(path, rows, "How far students came in each task", report)


def _days(path: Path, report: ClassReport) -> None:
    """Progress by day: how many students did all of a day's tasks, some, tried, or none."""
    days: dict[str, list[str]] = {}
    for task in report.tasks:
        days.setdefault(task.key.rpartition(".")[0], []).append(task.key)
    most = {task.key: task.points for task in report.tasks}
    there = [line for line in report.students if line.submission]
    rows = []
    for day, keys in days.items():
        shares = [sum(line.tasks[key].points for key in keys if key in line.tasks) for line in there]
        whole = sum(most[key] for key in keys)
        tried = [any(key in line.tasks and line.tasks[key].state == "failing" for key in keys) for line in there]
        full = sum(share >= whole for share in shares)
        part = sum(0 < share < whole for share in shares)
        failing = sum(share <= 0 and own for share, own in zip(shares, tried, strict=True))
        rows.append((f"Day {day}", [full, part, failing, len(there) - full - part - failing]))
    _stacked(path, rows, "Progress by day", report)


def _stacked(path: Path, rows: Sequence[tuple[str, Sequence[int]]], title: str, report: ClassReport) -> None:
    """Horizontal bars of students, the first row on top."""
    with _picture(path, 1.4 + _ROW * len(rows)) as axes:
        places = np.arange(len(rows))
        left = np.zeros(len(rows))
        for number, ((_, name), colour) in enumerate(zip(KINDS, _COLOURS, strict=True)):
            counts = np.array([counts[number] for _, counts in rows])
            bars = axes.barh(places, counts, left=left, color=colour, label=name, height=0.78)
            text = LIGHT.paper if number in (0, 2) else LIGHT.ink
            axes.bar_label(bars, [str(c) if c else "" for c in counts], label_type="center", color=text, fontsize=9)
            left += counts
        axes.set_yticks(places, [name for name, _ in rows])
        axes.set(xlabel="students", xlim=(0, max(report.handed_in, 1)), ylim=(len(rows) - 0.5, -0.5))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_title(f"{title} ({report.handed_in} students who handed in)", loc="left", pad=28)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(KINDS), borderaxespad=0.2)
        axes.tick_params(axis="y", length=0)


def _mistakes(path: Path, mistakes: Sequence[MistakeLine], report: ClassReport) -> None:
    """The most common ones, under their tasks, in the order of the course."""
    chosen = sorted(mistakes, key=lambda mistake: -mistake.students)[:_MOST_MISTAKES]
    shown = [mistake for mistake in mistakes if mistake in chosen]
    with _picture(path, 1.3 + 1.6 * _ROW * len(shown)) as axes:
        places = np.arange(len(shown))
        bars = axes.barh(places, [mistake.students for mistake in shown], color=LIGHT.series[1], height=0.72)
        axes.bar_label(bars, padding=4)
        axes.set_yticks(places, [f"{m.key}  {_short(m.title)}\n{_short(m.mistake, 52)}" for m in shown], fontsize=9)
        axes.set(xlabel="students", ylim=(len(shown) - 0.5, -0.5))
        axes.set_xlim(0, 1.08 * max(mistake.students for mistake in shown))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_title("Likely mistakes that the tests named", loc="left")
        axes.tick_params(axis="y", length=0)


def _week(key: str) -> str:
    return key.partition(".")[0]


def _short(text: str, most: int = 34) -> str:
    return shorten(text, most, placeholder=" ...").replace("$", r"\$")
