"""`final.md` beside a student's `report.md`: the points after late days, and how they came about.

The grader of one submission knows no deadline, so the report cannot say this."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from course.classroom.report import ClassReport, StudentLine
from course.grading.formats import replace
from course.grading.formats.report import escaped
from course.grading.grade import rounded, told

NAME = "final.md"


def write_final(folder: Path, report: ClassReport) -> None:
    """One file for each submission, with a part for each of its students. Raises OSError."""
    students: dict[str, list[StudentLine]] = defaultdict(list)
    for line in report.students:
        students[line.folder].append(line)
    for key, lines in students.items():
        if key and (folder / key).is_dir():
            text = "\n".join(part for line in lines for part in _part(line, report.max_points))
            replace(folder / key / NAME, f"# {escaped(report.title)}\n\n{text}\n".encode())


def _part(line: StudentLine, most: float) -> Iterator[str]:
    yield f"## {escaped(line.name)}: {told(line.final)} of {told(most)} points\n"
    yield f"- earned: {told(line.points)} points"
    if line.submitted:
        yield f"- handed in: {line.submitted} ({escaped(line.time_from)})"
    if line.deadline:
        yield f"- deadline: {line.deadline}"
        yield f"- late: {_late(line)}"
    if line.problem:
        yield f"- not everything was graded: {escaped(line.problem)}"
    yield ""


def _late(line: StudentLine) -> str:
    if not line.submitted:
        return "no, as no time is known"
    if not line.days_late:
        return "no"
    days = f"{line.days_late} day{'s' if line.days_late > 1 else ''}, {line.days_charged} of them charged"
    return f"{days}: {told(rounded(line.points - line.final))} points taken off"
