"""`summary.md`: a class on one page, to read or to send to colleagues."""

from collections.abc import Iterator

from course.classroom.report import ClassReport, StudentLine
from course.grading.grade import told

_MOST_MISTAKES = 10
_MARKDOWN = str.maketrans({c: f"\\{c}" for c in "\\`*_{}[]<>#|~&"})


def markdown(report: ClassReport) -> Iterator[str]:
    """Its lines."""
    absent = sum(line.ended == "no submission" for line in report.students)
    possible = f"of {told(report.max_points)} points, after late days"
    yield f"# {_plain(report.title)}: results of the class\n"
    yield f"Graded {report.graded}. {report.handed_in} students handed in, {absent} did not.\n"
    yield f"Mean {told(report.mean)}, median {told(report.median)} {possible}.\n"
    yield from (f"- {_plain(note)}" for note in report.notes)
    yield from _students(report)
    yield from _tasks(report)
    yield from _mistakes(report)
    if report.similar:
        yield from _similar(report)


def _students(report: ClassReport) -> Iterator[str]:
    yield "\n## Students\n"
    yield "| name | id | final | points | late days | remark |\n|---|---|---:|---:|---:|---|"
    for line in report.students:
        cells = (_plain(line.name), _plain(line.id), told(line.final), told(line.points), str(line.days_late or ""))
        yield f"| {' | '.join(cells)} | {_plain(_remark(line))} |"


def _tasks(report: ClassReport) -> Iterator[str]:
    yield "\n## Tasks\n"
    yield "| task | title | points | mean | done | partly | failing | not done |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for task in report.tasks:
        numbers = (told(task.points), told(task.mean), *map(str, (task.done, task.partly, task.failing, task.todo)))
        yield f"| {task.key} | {_plain(task.title)} | {' | '.join(numbers)} |"


def _mistakes(report: ClassReport) -> Iterator[str]:
    yield "\n## Common mistakes\n"
    for mistake in sorted(report.mistakes, key=lambda m: -m.students)[:_MOST_MISTAKES]:
        yield f"- {mistake.key} {_plain(mistake.title)}: {_plain(mistake.mistake)} ({mistake.students})"
    if not report.mistakes:
        yield "The tests recognised none."


def _similar(report: ClassReport) -> Iterator[str]:
    yield "\n## Similar submissions\n"
    yield "A hint to look, not a finding: code that is neither the starter's nor the reference's, and stands in both.\n"
    for pair in report.similar:
        names = f"{_plain(pair.first)} and {_plain(pair.second)}"
        yield f"- {names}: {pair.share:.0%} ({', '.join(pair.files)})"


def _remark(line: StudentLine) -> str:
    """What is not as usual about a line."""
    parts = [] if line.listed else ["not in the roster"]
    parts += [line.ended] if line.ended != "graded" else []
    parts += [line.problem] if line.problem and line.ended != "no submission" else []
    found = ": ".join(parts)
    return "; ".join(filter(None, (found, line.remarks)))


def _plain(text: str) -> str:
    return " ".join(text.split()).translate(_MARKDOWN)
