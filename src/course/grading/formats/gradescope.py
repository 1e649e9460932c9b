"""Gradescope's `results.json`: one test for each task, one more for each hidden part."""

import msgspec

from course.grading.grade import CaseGrade, Grade, HiddenGrade, TaskGrade

_MOST_OUTPUT = 8000
_MOST_FAILURES = 3


def encode(grade: Grade) -> bytes:
    """The bytes of `results.json`."""
    result: dict[str, object] = {
        "score": grade.points,
        "execution_time": round(grade.seconds, 3),
        "output": _summary(grade),
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [test for task in grade.tasks for test in _tests(task)],
        "leaderboard": [
            {"name": _measured(entry.name, entry.unit), "value": entry.value, "order": entry.order}
            for entry in grade.leaderboard
        ],
    }
    return msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n"


def _summary(grade: Grade) -> str:
    """What a student reads first: no sum, because hidden parts may be in it."""
    lines = [f"{grade.title}: {len(grade.tasks)} tasks"]
    if grade.problem:
        lines.append(f"Not everything was graded: {grade.problem}")
    lines += [f"Note: {note}" for note in grade.notes]
    lines += [f"Measured on: {hardware}" for hardware in dict.fromkeys(entry.hardware for entry in grade.leaderboard)]
    return "\n".join(lines)[:_MOST_OUTPUT]


def _measured(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name


def _tests(task: TaskGrade) -> list[dict[str, object]]:
    public = _test(
        task.key,
        f"{task.label}: {task.title}",
        (task.public_points, task.public_max_points),
        task.state == "done",
        _output(task),
        task.visibility,
    )
    if task.hidden is None:
        return [public]
    hidden = _test(
        f"{task.key}h",
        f"{task.label}: hidden variants",
        (task.hidden.points, task.hidden.max_points),
        task.hidden.state == "done",
        hidden_output(task.hidden),
        task.hidden_visibility,
    )
    return [public, hidden]


def _test(
    number: str, name: str, points: tuple[float, float], passed: bool, output: str, visibility: str
) -> dict[str, object]:
    return {
        "number": number,
        "name": name,
        "score": points[0],
        "max_score": points[1],
        "status": "passed" if passed else "failed",
        "output": output,
        "output_format": "text",
        "tags": [f"week-{number.partition('.')[0]}"],
        "visibility": visibility,
    }


def _output(task: TaskGrade) -> str:
    lines = [f"{task.state}: {task.passed} of {task.total} cases pass"]
    failed = [case for case in task.cases if case.state == "failed"] or [c for c in task.cases if c.state != "passed"][
        :1
    ]
    lines += [f"\n{case.text}" for case in failed[:_MOST_FAILURES] if case.text]
    if more := failed[_MOST_FAILURES:]:
        lines.append(f"\n{len(more)} more fail: {', '.join(_names(more))}")
    text = "\n".join(lines)
    return text if len(text) <= _MOST_OUTPUT else f"{text[:_MOST_OUTPUT]} ..."


def _names(cases: list[CaseGrade]) -> list[str]:
    return list(dict.fromkeys(case.name.partition("[")[0] for case in cases))


def hidden_output(hidden: HiddenGrade) -> str:
    """A verdict, and perhaps which properties fail: never inputs, and no message, which might hold some."""
    if hidden.state == "not run":
        return "not run: the visible tests of the task must pass first"
    if hidden.state == "done":
        return "all properties hold for other inputs too"
    failed = "".join(f"\n- {text}" for text in hidden.failed)
    return f"not all properties hold for other inputs{':' if failed else ''}{failed}"
