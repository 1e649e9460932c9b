"""Points of the course file in the text of `curriculum/weekN.toml`: these numbers change, and not another byte."""

import re
import tomllib
from collections.abc import Mapping

from course.curriculum import Task, points_text
from course.errors import CourseError

_TABLE = re.compile(r"\[\[(day|day\.task)\]\]\s*(#.*)?")
_POINTS = re.compile(r"(points\s*=\s*)([\d._]+)(.*)", re.DOTALL)


def with_points(name: str, text: str, points: Mapping[Task, float]) -> str:
    """The text of the week's file `name` with these points for its tasks. Raises CourseError where that fails."""
    if none := next((task for task, value in points.items() if value <= 0), None):
        raise CourseError(
            f"{none.label} has {points_text(points[none])} points: a students' repository says what a task is worth, "
            "so give it more than 0, or leave its day out of [graded]"
        )
    wanted = {(task.day, task.number): value for task, value in points.items()}
    day = task = 0
    lines = text.splitlines(keepends=True)
    for index, line in enumerate(lines):
        if table := _TABLE.fullmatch(line.strip()):
            day, task = (day + 1, 0) if table[1] == "day" else (day, task + 1)
        elif (found := _POINTS.fullmatch(line)) and (day, task) in wanted:
            lines[index] = f"{found[1]}{points_text(wanted[day, task])}{found[3]}"
    changed = "".join(lines)
    if tomllib.loads(changed) != _expected(tomllib.loads(text), wanted):
        raise CourseError(f"{name}: cannot set its points: write each `points = N` on a line of its own")
    return changed


def _expected(week: dict, points: Mapping[tuple[int, int], float]) -> dict:
    for number, day in enumerate(week["day"], 1):
        for count, task in enumerate(day["task"], 1):
            task["points"] = round(points.get((number, count), task["points"]), 2)
    return week
