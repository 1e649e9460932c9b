"""`report.md`: a grade to read, with the first failure of each task."""

import re

from course.grading.formats.gradescope import hidden_output
from course.grading.grade import Grade, TaskGrade, told

_TICKS = re.compile("`+")
_CODE = re.compile("(`[^`]+`)")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|!&])")


def encode(grade: Grade) -> bytes:
    """The bytes of `report.md`."""
    parts = [*_head(grade), *_table(grade), *_leaderboard(grade), *(_failure(task) for task in grade.tasks)]
    return ("\n\n".join(filter(None, parts)) + "\n").encode()


def escaped(text: str) -> str:
    """Text that stands for itself in Markdown, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _noted(text: str) -> str:
    """The same, but for names that stand as code in it."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(part if number % 2 else _SPECIAL.sub(r"\\\1", part) for number, part in enumerate(parts))


def _head(grade: Grade) -> list[str]:
    who = f"{grade.student} ({grade.submission})" if grade.student else grade.submission
    facts = [f"Submission: {escaped(who)}", f"Course: {escaped(grade.course)}"]
    if grade.revision:
        facts.append(f"Commit: {grade.revision}")
    facts.append(
        f"Graded: {grade.started:%Y-%m-%d %H:%M} UTC in {grade.seconds:.0f} s, boundary: {grade.mode or 'none'}"
    )
    notes = [f"- {_noted(note)}" for note in grade.notes]
    off = [f"- no protection: {escaped(p.name)} ({escaped(p.detail)})" for p in grade.protections if not p.on]
    return [
        f"# {escaped(grade.title)}: {told(grade.points)} of {told(grade.max_points)} points",
        "  \n".join(facts),
        f"**Not everything was graded:** {escaped(grade.problem)}" if grade.problem else "",
        "\n".join(notes + off),
    ]


def _table(grade: Grade) -> list[str]:
    with_hidden = any(task.hidden for task in grade.tasks)
    lines = ["| task | state | cases |" + (" hidden |" if with_hidden else "") + " points |"]
    lines.append("|---|---|--:|" + ("--:|" if with_hidden else "") + "--:|")
    for task in grade.tasks:
        cells = [f"{task.label}: {escaped(task.title)}", escaped(task.state), f"{task.passed}/{task.total}"]
        if with_hidden:
            cells.append(f"{told(task.hidden.points)}/{told(task.hidden.max_points)}" if task.hidden else "")
        lines.append(f"| {' | '.join(cells)} | {told(task.points)}/{told(task.max_points)} |")
    empty = " |" * (3 if with_hidden else 2)
    lines.append(f"| total |{empty} {told(grade.points)}/{told(grade.max_points)} |")
    about = "The points of hidden variants, in the column hidden, are a part of the points." if with_hidden else ""
    return ["\n".join(lines), about]


def _leaderboard(grade: Grade) -> list[str]:
    lines = [
        f"- {escaped(entry.name)}: {entry.value:g} {escaped(entry.unit)} ({escaped(entry.hardware)})"
        for entry in grade.leaderboard
    ]
    return ["## Measured", "\n".join(lines)] if lines else []


def _failure(task: TaskGrade) -> str:
    """The first failure, in a fence that its text cannot close."""
    parts = []
    failed = next((case for case in task.cases if case.state == "failed"), None)
    if failed:
        fence = "`" * max(3, *(len(ticks) + 1 for ticks in _TICKS.findall(failed.text)), 3)
        parts.append(f"{fence}text\n{failed.text}\n{fence}")
    if task.hidden and task.hidden.state == "failing":
        parts.append(f"Hidden variants: {escaped(hidden_output(task.hidden))}")
    return "\n\n".join([f"## {task.label}: {escaped(task.title)}", *parts]) if parts else ""
