"""The text of a failed case: task, property, parameters, what is wrong. Never a traceback through the helper."""

import re
import traceback
from pathlib import Path

from course.case import Case
from course.compare import short
from course.curriculum import Task
from course.failure import Raised, Stopped, one_line

# What pytest adds to the message of an assertion: its expression, with the values inside. Addresses, not facts.
_ADDED = re.compile(r"\n(assert |[ ~]*\+ +(where|and) ).*", re.DOTALL)
_MOST_LINES = 30
_MOST_TEXT = 3000


def explain(task: Task, case: Case, index: int, error: BaseException, tests: Path) -> str:
    """What a learner reads when `case` fails with `error`."""
    params = ", ".join(f"{name}={_value(value)}" for name, value in case.params[index].items())
    head = f"{task.label}: {task.title}\n{case.property}\n"
    return f"{head}  in {case.name}[{index}]{' with ' + params if params else ''}\n{_cut(_reason(error, tests))}"


def _reason(error: BaseException, tests: Path) -> str:
    if isinstance(error, BaseExceptionGroup):  # Hypothesis found several: one is enough to go on with
        return _reason(error.exceptions[0], tests)
    notes = [note.strip() for note in getattr(error, "__notes__", [])]
    if isinstance(error, Raised | Stopped):
        return "\n".join([str(error), *notes])
    if isinstance(error, AssertionError) and str(error):
        return "\n".join([_ADDED.sub("", str(error)), *notes])
    places = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == tests]
    where = [f"  {tests.name}:{places[-1].lineno}: {places[-1].line}"] if places else []
    return "\n".join([one_line(error), *where, *notes])


def _value(value: object) -> str:
    return short(value, 100).removeprefix("mlx.core.")


def _cut(text: str) -> str:
    lines = text[:_MOST_TEXT].splitlines()
    cut = len(text) > _MOST_TEXT or len(lines) > _MOST_LINES
    return "\n".join([*lines[:_MOST_LINES], *(["..."] if cut else [])])
