"""The files of a class: `class.csv`, `tasks.csv`, `mistakes.csv`, `class.json` and `summary.md`."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from course.classroom.report import ClassReport, MistakeLine, StudentLine, SumLine
from course.classroom.sheet import write_sheet
from course.classroom.summary import markdown

_LINE = (
    "id",
    "name",
    "final",
    "points",
    "max_points",
    "ended",
    "problem",
    "remarks",
    "submission",
    "submitted",
    "time_from",
    "deadline",
    "days_late",
    "days_charged",
    "seconds",
)


def write_files(folder: Path, report: ClassReport) -> None:
    """Write all five. Raises OSError."""
    keys = [task.key for task in report.tasks]
    write_sheet(folder / "class.csv", [*_LINE, *keys], [_cells(line, report, keys) for line in report.students])
    _write_table(folder / "tasks.csv", SumLine, report.tasks)
    _write_table(folder / "mistakes.csv", MistakeLine, report.mistakes)
    (folder / "class.json").write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
    (folder / "summary.md").write_text("\n".join(markdown(report)) + "\n", encoding="utf-8")


def _cells(line: StudentLine, report: ClassReport, keys: Iterable[str]) -> list[str | int | float]:
    own = [report.max_points if name == "max_points" else getattr(line, name) for name in _LINE]
    return own + [line.tasks[key].points if key in line.tasks else 0.0 for key in keys]


def _write_table(path: Path, kind: type[msgspec.Struct], rows: Iterable[msgspec.Struct]) -> None:
    names = kind.__struct_fields__
    write_sheet(path, names, [[getattr(row, name) for name in names] for row in rows])
