"""How far the learner is, for programs: the same as the page says, as one JSON object."""

from collections.abc import Callable, Iterable

import msgspec

from course.curriculum import Day, Task, Week
from course.loop.progress import Progress, TaskProgress, next_task
from course.loop.table import earned


def overview_json(weeks: Iterable[Week], found: Progress, hints: Callable[[Task], int], solution: str) -> str:
    """See the manual of `status` for the fields."""
    weeks = list(weeks)
    tasks = [task for week in weeks for day in week.days for task in day.tasks]
    got, possible = earned(tasks, found)
    upcoming = next_task(found, tasks)
    told = {
        "solution": solution,
        "points": {"earned": got, "possible": possible},
        "next": _place(upcoming) | {"command": f"pdm run test {upcoming.options}"} if upcoming else None,
        "weeks": [
            {"week": week.week, "title": week.title, "days": [_day(day, found, hints) for day in week.days]}
            for week in weeks
        ],
    }
    return msgspec.json.format(msgspec.json.encode(told)).decode()


def _day(day: Day, found: Progress, hints: Callable[[Task], int]) -> dict[str, object]:
    tasks = [_task(task, found[task], hints(task)) for task in day.tasks]
    return {"day": day.day, "title": day.title, "tasks": tasks}


def _task(task: Task, seen: TaskProgress, hints: int) -> dict[str, object]:
    return _place(task) | {
        "state": seen.state,
        "passed": seen.passed,
        "points": task.points,
        "points_earned": task.points if seen.passed else 0,
        "cases": seen.cases,
        "passed_cases": seen.passed_cases,
        "when": seen.when or None,
        "ran_on": seen.ran_on or None,
        "blocked_by": seen.by or None,
        "stubs_left": seen.left,
        "hints_seen": hints,
    }


def _place(task: Task) -> dict[str, object]:
    return {
        "week": task.week,
        "day": task.day,
        "task": task.number,
        "title": task.title,
        "files": list(task.symbols),
        "chapter": task.anchor,
    }
