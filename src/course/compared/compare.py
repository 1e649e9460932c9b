"""A whole comparison: which cases belong to the task, what must be built, and all cases in turn."""

from collections.abc import Callable

from course.case import Case
from course.compared.comparison import CaseComparison, Comparison, State
from course.compared.measure import Pair, compare_case
from course.compared.probes import load_tests
from course.compared.side import Failed, Side
from course.compared.words import summary
from course.curriculum import Curriculum, Day, Task
from course.errors import CourseError
from course.failure import Failure
from course.library import build, without_library
from course.machine import facts
from course.paths import package_folder

REFERENCE = "tiny_llm_ref"


def compare(
    curriculum: Curriculum,
    task: Task,
    repeat: int,
    case: str | None = None,
    learner: str = "tiny_llm",
    say: Callable[[str], None] = lambda line: None,
) -> Comparison:
    """Compare `learner` with the reference on the graded cases of a task, or on the one called `case`.

    say: gets a line before each long wait. Raises CourseError for a task without cases, for a case that does not exist,
    and where the reference itself cannot be run.
    """
    day = curriculum.day(task.week, task.day)
    cases = _cases(day, task, case)
    parts = curriculum.built_for(day)
    unbuilt = _build(task, learner, parts, say)
    sides = Side(learner, curriculum, day, unbuilt), Side(REFERENCE, curriculum, day)
    try:
        found = tuple(_compared(Pair(*sides, repeat, bool(parts)), one, say) for one in cases)
    finally:
        for side in sides:
            side.close()
    emulated = any(one.reference.counters for one in found if one.reference)
    return Comparison(
        task=f"{task.week}.{task.day}.{task.number}",
        title=task.title,
        learner=learner,
        reference=REFERENCE,
        state=_state(found),
        summary=summary(found, emulated),
        cases=found,
        emulated=emulated,
        machine=facts(),
    )


def _cases(day: Day, task: Task, name: str | None) -> list[Case]:
    if not day.tests.is_file():
        raise CourseError(f"{day.tests} does not exist: without it there is nothing to compare on")
    values = vars(load_tests(str(day.tests))).values()
    cases = {value.name: value for value in values if isinstance(value, Case) and value.task == task.number}
    if not cases:
        raise CourseError(f"{task.label} has no graded cases, so there is nothing to compare on")
    if name is not None and name not in cases:
        raise CourseError(f"{task.label} has no case {name}: choose from {', '.join(cases)}")
    return [cases[name]] if name else list(cases.values())


def _build(task: Task, learner: str, parts: set[str], say: Callable[[str], None]) -> Failure | None:
    """Why the learner's code cannot run; None if it can. Raises CourseError where the reference cannot."""
    if problems := build(sorted(parts), package_folder(REFERENCE), say):
        raise CourseError(problems[min(problems)])
    own = package_folder(learner)
    problems = build(sorted(parts), own, say)
    return without_library(task, own, problems[min(problems)]) if problems else None


def _compared(pair: Pair, case: Case, say: Callable[[str], None]) -> CaseComparison:
    say(f"{case.name}: {case.property}")
    try:
        return compare_case(pair, case)
    except Failed as failed:
        raise CourseError(f"the reference itself fails in {case.name}: {str(failed).splitlines()[0]}") from None


def _state(cases: tuple[CaseComparison, ...]) -> State:
    states = {case.state for case in cases}
    return next(state for state in ("stops", "fails", "to do", "passes") if state in states)
