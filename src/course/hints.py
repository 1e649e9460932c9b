"""Three hints per task, one at a time: a nudge, an invariant, nearly the code. Remembers how many were shown."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from course.curriculum import Task
from course.state import STATE, State, read_state, update_state

LEVELS = (1, 2, 3)
NAMES = ("nudge", "invariant", "nearly code")


def next_level(task: Task, path: Path = STATE) -> int:
    """The first level not shown yet; the last one when all were."""
    return min(_shown(read_state(path)).get(_key(task), 0) + 1, LEVELS[-1])


def remember(task: Task, level: int, path: Path = STATE) -> int:
    """Note that a level was shown; returns the highest shown so far.

    Where nothing can be written, hints still work but start anew each time.
    """
    highest = level

    def change(state: State) -> State:
        nonlocal highest
        shown = _shown(state)
        highest = max(level, shown.get(_key(task), 0))
        return state | {"hints": shown | {_key(task): highest}}

    with contextlib.suppress(OSError):
        update_state(change, path)
    return highest


def levels_shown(path: Path = STATE) -> Callable[[Task], int]:
    """How many hints of a task were shown, for any task, as remembered now."""
    shown = _shown(read_state(path))
    return lambda task: shown.get(_key(task), 0)


def command(task: Task) -> str:
    """The command that shows the task's next hint."""
    return f"pdm run hint {task.options}"


def _shown(state: State) -> dict[str, int]:
    shown = state.get("hints")
    if not isinstance(shown, dict):
        return {}
    return {key: level for key, level in shown.items() if level in LEVELS}


def _key(task: Task) -> str:
    return f"{task.week}.{task.day}.{task.number}"
