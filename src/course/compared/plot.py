"""Bars of ratios, learner by reference: time, memory and bytes moved by kernels. Needs Matplotlib."""

from pathlib import Path

from course.compared.comparison import CaseComparison, Comparison
from course.compared.words import SMALL
from course.errors import CourseError

SUFFIXES = (".svg", ".png", ".pdf")


def check(file: Path) -> None:
    """Raise CourseError, before the minutes of measuring, for a picture that could not be written."""
    from importlib.util import find_spec

    if file.suffix not in SUFFIXES:
        raise CourseError(f"{file} does not end in {', '.join(SUFFIXES)}: try plot.svg")
    if not file.parent.is_dir():
        raise CourseError(f"no folder {file.parent}: make it, or write to another place")
    if find_spec("matplotlib") is None:
        raise CourseError("matplotlib is not installed, so there is no plot: run `pdm install -G class`")


def draw(comparison: Comparison, file: Path) -> None:
    """Write the picture. Raises CourseError where the learner's code gave nothing, or the file is refused."""
    rows = [(case.name, _ratios(case)) for case in comparison.cases]
    rows = [(name, ratios) for name, ratios in rows if ratios]
    if not rows:
        raise CourseError(f"{comparison.learner} gave nothing to draw: all of its cases stop or are still to do")
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    kinds = list(dict.fromkeys(kind for _, ratios in rows for kind in ratios))
    figure = Figure(figsize=(8, 1.2 + 0.28 * len(rows) * len(kinds)), layout="constrained")
    axes = figure.add_subplot()
    height = 0.8 / len(kinds)
    for number, kind in enumerate(kinds):
        places = [row + number * height for row, (_, ratios) in enumerate(rows) if kind in ratios]
        bars = axes.barh(places, [ratios[kind] for _, ratios in rows if kind in ratios], height, label=kind)
        axes.bar_label(bars, fmt="%.2f", padding=3, fontsize=8)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_yticks([row + 0.4 - height / 2 for row in range(len(rows))], [name for name, _ in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(f"{comparison.learner} / {comparison.reference} (1: alike; less is better)")
    axes.set_title(f"{comparison.task} {comparison.title}")
    figure.legend(loc="outside lower center", ncols=len(kinds), fontsize=8)
    axes.margins(x=0.12)
    try:
        figure.savefig(file)
    except OSError as error:
        raise CourseError(f"cannot write {file}: {error.strerror}") from None


def _ratios(case: CaseComparison) -> dict[str, float]:
    """By kind, where both sides have a number."""
    if not (case.ratio and case.learner and case.reference):
        return {}
    found = {"time": case.slower}
    if case.reference.bytes and max(case.learner.bytes, case.reference.bytes) >= SMALL:
        found["memory"] = case.learner.bytes / case.reference.bytes
    for kernel in case.reference.counters:
        learner, reference = case.learner.moved(kernel), case.reference.moved(kernel)
        if learner and reference:
            found[f"bytes moved by {kernel}"] = learner / reference
    return found
