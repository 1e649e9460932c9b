"""`result.csv`: one line for each task and a last one for their sum, for spreadsheets."""

import csv
import io

from course.grading.grade import Grade, TaskGrade, told, total
from course.grading.text import FORMULA

_POINTS = ("points", "max_points", "hidden_points", "hidden_max_points")
HEADER = ("student", "week", "day", "task", "title", "state", "passed", "total", *_POINTS)


def encode(grade: Grade) -> bytes:
    """The bytes of `result.csv`."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(HEADER)
    for task in grade.tasks:
        writer.writerow(map(safe, _row(grade.student, task)))
    hidden = [task.hidden for task in grade.tasks if task.hidden]
    cases = sum(task.passed for task in grade.tasks), sum(task.total for task in grade.tasks)
    sums = grade.points, grade.max_points, total(h.points for h in hidden), total(h.max_points for h in hidden)
    state = "complete" if grade.complete else "incomplete"
    writer.writerow(map(safe, (grade.student, "", "", "", "total", state, *map(str, cases), *map(told, sums))))
    return out.getvalue().encode()


def _row(student: str, task: TaskGrade) -> tuple[str, ...]:
    hidden = (told(task.hidden.points), told(task.hidden.max_points)) if task.hidden else ("", "")
    numbers = task.week, task.day, task.task, task.title, task.state, task.passed, task.total
    return (student, *map(str, numbers), told(task.points), told(task.max_points), *hidden)


def safe(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if cell.startswith(FORMULA) else cell
