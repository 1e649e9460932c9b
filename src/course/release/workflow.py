"""The GitHub Classroom workflow: one graded step per task, and the reporter that adds them up."""

import math
from collections.abc import Callable, Sequence

from course.curriculum import Day, Task

GRADER = "classroom-resources/autograding-command-grader@v1"
REPORTER = "classroom-resources/autograding-grading-reporter@v1"
_HEAD = "# Made by `pdm run release classroom` from curriculum/ and the course file: make it again, do not edit it.\n"
_MINUTES = 10
_HAIR = 1e-6  # what a sum of hundredths may lack


def workflow(days: Sequence[Day], points: Callable[[Task], float]) -> str:
    """The text of `.github/workflows/classroom.yml` for the graded days."""
    import yaml

    tasks = [task for day in days for task in day.tasks]
    job = {
        "runs-on": "ubuntu-latest",
        "if": "github.actor != 'github-classroom[bot]'",
        "timeout-minutes": 120,
        "steps": [*_prepare(), *(_step(*pair) for pair in whole_points(tasks, points).items()), _reporter(tasks)],
    }
    document = {
        "name": "Autograding Tests",
        "on": ["push", "workflow_dispatch", "repository_dispatch"],
        "permissions": {"checks": "write", "actions": "read", "contents": "read"},
        "jobs": {"run-autograding-tests": job},
    }
    return _HEAD + yaml.safe_dump(document, sort_keys=False, width=1000)


def whole_points(tasks: Sequence[Task], points: Callable[[Task], float]) -> dict[Task, int]:
    """The grading action takes whole numbers. These add up to the whole course's, rounded: largest remainders go up."""
    found = {task: int(points(task)) for task in tasks}
    left = math.floor(sum(map(points, tasks)) + 0.5 + _HAIR) - sum(found.values())
    for task in sorted(tasks, key=lambda task: found[task] - points(task))[:left]:
        found[task] += 1
    return found


def _prepare() -> list[dict[str, object]]:
    return [
        {"name": "Checkout code", "uses": "actions/checkout@v4"},
        {"name": "Python", "uses": "actions/setup-python@v5", "with": {"python-version": "3.12"}},
        {"name": "Install", "run": "./run status"},
    ]


def _step(task: Task, points: int) -> dict[str, object]:
    options = {
        "test-name": f"{task.label}: {task.title}",
        "command": f"./run test {task.options}",
        "timeout": _MINUTES,
        "max-score": points,
    }
    return {"name": task.label, "id": _id(task), "uses": GRADER, "with": options}


def _reporter(tasks: Sequence[Task]) -> dict[str, object]:
    results = {f"{_id(task).upper()}_RESULTS": f"${{{{steps.{_id(task)}.outputs.result}}}}" for task in tasks}
    runners = {"runners": ",".join(map(_id, tasks))}
    return {"name": "Autograding Reporter", "uses": REPORTER, "env": results, "with": runners}


def _id(task: Task) -> str:
    return f"week{task.week}-day{task.day}-task{task.number}"
