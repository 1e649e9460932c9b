"""Points from runs: a task earns all of its public part or nothing, and its hidden part only with it.

A case that did not report has not passed, whatever the reason."""

from collections.abc import Iterator, Sequence

import msgspec

from course.curriculum import Day, Task
from course.grading.course_file import Course, HiddenTable
from course.grading.grade import CaseGrade, Grade, HiddenGrade, TaskGrade, rounded
from course.grading.runner import DayRun, Expected
from course.grading.text import clean, one_line
from course.summary import Result, state_of

MOST_TEXT, LEAST_TEXT = 3000, 400
IN_FULL = 5
"""So many failures of a task are told in full."""
MOST_PRINTED_LINES = 10
_LONGEST_LINE = 200


def score_day(
    course: Course, day: Day, public: DayRun | None, hidden: Sequence[DayRun], table: HiddenTable | None
) -> list[TaskGrade]:
    """The tasks of a day; `table` says how much hidden variants are worth, None that there are none."""
    return [_score(course, task, public or DayRun(day), hidden, table) for task in day.tasks]


def rescored(grade: Grade, course: Course) -> Grade:
    """The same cases with the title, points and visibility of `course`."""
    tasks = {f"{task.week}.{task.day}.{task.number}": task for task in course.curriculum.tasks}
    scored = tuple(_rescored(course, tasks[old.key], old) for old in grade.tasks)
    return msgspec.structs.replace(grade, title=one_line(course.title), tasks=scored)


def _rescored(course: Course, task: Task, old: TaskGrade) -> TaskGrade:
    points, part = course.points_of(task), old.hidden
    if part:
        most = course.hidden_points_of(task, course.hidden or HiddenTable())
        part = msgspec.structs.replace(part, points=most if part.state == "done" else 0.0, max_points=most)
    open_points = rounded(points - (part.max_points if part else 0.0))
    done = 0 < old.total == old.passed
    return msgspec.structs.replace(
        old,
        points=rounded((open_points if done else 0.0) + (part.points if part else 0.0)),
        max_points=rounded(points),
        visibility=course.visibility_of(task),
        hidden_visibility=course.visibility_of(task, hidden=True),
        hidden=part,
    )


def passes(run: DayRun, task: Task) -> bool:
    """Whether a task has cases, and all of them passed."""
    found = run.of(task.number)
    return bool(found) and all(result is not None and result.kind == "passed" for _, result in found)


def _score(
    course: Course, task: Task, public: DayRun, hidden: Sequence[DayRun], table: HiddenTable | None
) -> TaskGrade:
    found, done = public.of(task.number), passes(public, task)
    points = course.points_of(task)
    part = _hidden(course, task, done, hidden, table) if table else None
    open_points = rounded(points - (part.max_points if part else 0.0))
    return TaskGrade(
        week=task.week,
        day=task.day,
        task=task.number,
        title=task.title,
        points=rounded((open_points if done else 0.0) + (part.points if part else 0.0)),
        max_points=rounded(points),
        state=_state(found, public),
        passed=sum(result is not None and result.kind == "passed" for _, result in found),
        total=len(found),
        visibility=course.visibility_of(task),
        hidden_visibility=course.visibility_of(task, hidden=True),
        hidden=part,
        cases=tuple(_cases(found)),
    )


def _hidden(course: Course, task: Task, done: bool, runs: Sequence[DayRun], table: HiddenTable) -> HiddenGrade:
    most = course.hidden_points_of(task, table)
    found = [pair for run in runs for pair in run.of(task.number)]
    failed = dict.fromkeys(case.property for case, result in found if result is None or result.kind != "passed")
    if not done or len(runs) < table.seeds or any(run.problem and not run.of(task.number) for run in runs):
        return HiddenGrade(0.0, most, "not run", 0, 0)
    state = "done" if all(passes(run, task) for run in runs) else "failing"
    passed = sum(result is not None and result.kind == "passed" for _, result in found)
    shown = tuple(failed) if table.show == "properties" else ()
    return HiddenGrade(most if state == "done" else 0.0, most, state, passed, len(found), shown)


def _state(found: list[tuple[Expected, Result | None]], run: DayRun) -> str:
    results = [result for _, result in found if result is not None]
    if not found:
        return "not run" if run.problem or not run.expected else "no graded checks"
    state = state_of(results)
    complete = len(results) == len(found) and all(result.kind != "not run" for result in results)
    return state if complete or state not in ("done", "no graded checks") else "not run"


def _cases(found: list[tuple[Expected, Result | None]]) -> Iterator[CaseGrade]:
    """All cases; the first failures in full."""
    told = 0
    for case, result in found:
        told += result is not None and result.kind != "passed"
        yield _case(case, result, MOST_TEXT if told <= IN_FULL else LEAST_TEXT)


def _case(case: Expected, result: Result | None, most: int) -> CaseGrade:
    if result is None:
        return CaseGrade(case.name, case.property, "not run", text="it did not report a result")
    text = "" if result.kind == "passed" else clean(result.text, most) + (_printed(result) if most == MOST_TEXT else "")
    mistakes = tuple(clean(mistake, 300) for mistake in result.mistakes)
    return CaseGrade(case.name, case.property, result.kind, result.by, text, mistakes)


def _printed(result: Result) -> str:
    """The last lines that the code printed, each marked as such: they may look like anything."""
    lines = clean(result.output[-(MOST_PRINTED_LINES * 2 * _LONGEST_LINE) :], 1 << 20).strip().splitlines()
    if result.kind != "failed" or not lines:
        return ""
    marked = (f"  | {line[:_LONGEST_LINE]}" for line in lines[-MOST_PRINTED_LINES:])
    return "\n".join(["\n\nprinted by the submission:", *marked])
