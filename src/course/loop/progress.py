"""How far the learner is: what runs of the tests left behind, seen beside what the files say now.

Kept in the state file, which can be deleted at any time. Only runs of the package of this checkout are kept."""

import contextlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from course.curriculum import Curriculum, Task
from course.errors import CourseError
from course.loop.sources import Sources
from course.paths import SRC, package_folder
from course.state import STATE, State, read_state, update_state
from course.summary import Result, state_of

KEY = "progress"
GIVEN = "given"
_BLOCKED_BY = "blocked by "


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the last run of a task left. source: fingerprint of its code then. by: the task that blocked it.

    given: fingerprint of its own functions as they were filled in from the reference, "" where they were not.
    """

    state: str
    source: str
    when: str = ""
    cases: int = 0
    passed: int = 0
    ran_on: str = ""
    by: str = ""
    given: str = ""


class TaskProgress(msgspec.Struct, frozen=True):
    """One task now.

    state: "done", "failing", "to do", "blocked", "changed" (since its last run), "not run" (written, but never run),
    "given" (filled in from the reference), "missing" (a file of it), or what else its last run said.
    passed: its last run passed, and no stub is back; true also where its code has changed since.
    cases, passed_cases, when (UTC, "" for never), ran_on, by: what the last run said. left: stubs to write.
    """

    state: str
    passed: bool
    left: int
    cases: int
    passed_cases: int
    when: str
    ran_on: str
    by: str

    @property
    def settled(self) -> bool:
        """Whether there is nothing to do about it."""
        return self.passed or self.state == GIVEN


Progress = dict[Task, TaskProgress]


def progress(curriculum: Curriculum, solution: str = "tiny_llm", path: Path = STATE) -> Progress:
    """Every task of the course."""
    return assess(Sources(curriculum, SRC / solution), path)


def assess(sources: Sources, path: Path = STATE) -> Progress:
    """Every task, with the files as `sources` has read them."""
    entries = _entries(read_state(path), sources.package.name)
    tasks = sources.curriculum.tasks
    found = {task: _seen(task, entries.get(key(task)), sources) for task in tasks}
    labels = {task.label: task for task in tasks}
    for task, seen in found.items():
        blocker = labels.get(seen.by)
        if seen.state == "blocked" and (blocker is None or found[blocker].settled):
            found[task] = msgspec.structs.replace(seen, state="not run")
    return found


def next_task(found: Progress, tasks: Iterable[Task] | None = None) -> Task | None:
    """The first of `tasks` (default: all) about which there is something to do."""
    return next((task for task in (found if tasks is None else tasks) if not found[task].settled), None)


def record(results: Sequence[Result], sources: Sources, path: Path = STATE) -> str:
    """Keep what a run said. sources: the files as they were before it. Returns why it could not be kept, or "".

    A run of a part of a task can show that it fails, never that it is done. Code from the reference stays given.
    """
    if not is_own(sources.package):
        return ""
    tasks: dict[Task, list[Result]] = {}
    for result in results:
        with contextlib.suppress(CourseError):
            tasks.setdefault(sources.curriculum.task(result.week, result.day, result.task), []).append(result)
    before = _entries(read_state(path), sources.package.name)
    new = {}
    for task, few in tasks.items():
        given = before[key(task)].given if key(task) in before else ""
        if (not given or given != sources.of(task).own) and (entry := _entry(few, sources.of(task).whole)):
            new[task] = msgspec.structs.replace(entry, given=given)
    return _keep(new, sources, path)


def mark_given(tasks: Iterable[Task], sources: Sources, path: Path = STATE) -> str:
    """Keep that tasks were filled in from the reference: they earn nothing, and nothing is to do about them.

    Returns why it could not be kept, or "".
    """
    found = {task: sources.of(task) for task in tasks}
    return _keep({t: Entry(GIVEN, of.whole, _now(), given=of.own) for t, of in found.items()}, sources, path)


def is_own(package: Path) -> bool:
    """Whether a package is the one in this checkout, and no copy that PYTHONPATH puts before it."""
    return package.is_dir() and package.resolve() == (SRC / package.name).resolve()


def graded(curriculum: Curriculum, solution: str) -> Sources:
    """The files that a run grades."""
    return Sources(curriculum, package_folder(solution))


def key(task: Task) -> str:
    """The task's name in the state file."""
    return f"{task.week}.{task.day}.{task.number}"


def _seen(task: Task, entry: Entry | None, sources: Sources) -> TaskProgress:
    source = sources.of(task)
    same = entry is not None and entry.source == source.whole
    if source.missing:
        state = "missing"
    elif entry and entry.given and entry.given == source.own:
        state = GIVEN
    elif same:
        state = entry.state
    elif source.left:
        state = "to do"
    else:
        state = "changed" if entry else "not run"
    passed = entry is not None and entry.state == "done" and state in ("done", "changed")
    entry = entry or Entry("", "")
    by = entry.by if state == "blocked" else ""
    return TaskProgress(state, passed, source.left, entry.cases, entry.passed, entry.when, entry.ran_on, by)


def _entry(results: list[Result], source: str) -> Entry | None:
    """What to keep of a task; None for a part that proves nothing."""
    state = state_of(results)
    if len(results) < results[0].of and state != "failing":
        return None
    by = state.removeprefix(_BLOCKED_BY) if state.startswith(_BLOCKED_BY) else ""
    passed = [result for result in results if result.kind == "passed"]
    ran_on = passed[0].ran_on if passed else ""
    return Entry("blocked" if by else state, source, _now(), results[0].of, len(passed), ran_on, by)


def _keep(entries: dict[Task, Entry], sources: Sources, path: Path) -> str:
    """Where nothing can be written, the tests still run: returns why, or ""."""
    new = {key(task): msgspec.to_builtins(entry) for task, entry in entries.items()}

    def change(state: State) -> State:
        kept = state.get(KEY)
        kept = kept if isinstance(kept, dict) else {}
        before = kept.get(sources.package.name)
        before = before if isinstance(before, dict) else {}
        return state | {KEY: kept | {sources.package.name: before | new}}

    try:
        if new:
            update_state(change, path)
    except OSError as error:
        return f"your progress cannot be saved in {path.parent}: {error.strerror or error}"
    return ""


def _entries(state: State, package: str) -> dict[str, Entry]:
    kept = state.get(KEY)
    mine = kept.get(package) if isinstance(kept, dict) else None
    entries = {}
    for name, value in mine.items() if isinstance(mine, dict) else ():
        with contextlib.suppress(msgspec.ValidationError):
            entries[name] = msgspec.convert(value, Entry)
    return entries


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
