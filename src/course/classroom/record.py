"""What the last run left of a submission: a folder with its grade, and beside it what the grade depended on.

A grade is made in a folder of its own and moved into place when it is whole. So a run that is cut off leaves either the
old grade or the new one, and never half of one."""

import shutil
import tempfile
from contextlib import suppress
from glob import escape
from pathlib import Path

import msgspec

from course.errors import CourseError
from course.grading.formats import replace
from course.grading.grade import Grade, read

_FILE = "graded.json"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """`ended`: "graded", "time limit" (after `limit` s) or "failed" (the grader itself; `problem` says how).

    `scoring`: the points and what else of the course file the grade was scored with.
    """

    fingerprint: str
    ended: str
    problem: str = ""
    limit: float
    seconds: float
    scoring: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """How a submission ended. `grade` is None where the grader left none."""

    record: Record
    grade: Grade | None
    reused: bool = False


def kept(folder: Path, fingerprint: str, limit: float) -> Outcome | None:
    """The outcome of an earlier run, where it still holds.

    What the grader or its process boundary failed on is tried again, and so is what ran out of a smaller time limit.
    """
    outcome = load(folder)
    if outcome is None or outcome.record.fingerprint != fingerprint:
        return None
    ended = outcome.record.ended
    if ended == "failed" or (ended == "time limit" and outcome.record.limit < limit):
        return None
    if outcome.grade and any(task.state == "not graded" for task in outcome.grade.tasks):
        return None
    return msgspec.structs.replace(outcome, reused=True)


def load(folder: Path) -> Outcome | None:
    """What stands in the folder; None where that is not whole."""
    try:
        record = msgspec.json.decode((folder / _FILE).read_bytes(), type=Record)
        grade = read(folder) if record.ended == "graded" else None
    except (OSError, msgspec.DecodeError, CourseError):
        return None
    if record.ended == "time limit":
        with suppress(CourseError):
            grade = read(folder)
    return Outcome(record, grade)


def unfinished(folder: Path) -> Path:
    """An empty folder beside `folder` in which its grade is made; what an earlier run left of such is removed.

    Its name begins with a dot and holds a tilde, as no student's folder does. It is new each time, so that nothing of
    an earlier run that still lives can write into it.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    for old in folder.parent.glob(f".{escape(folder.name)}~*"):
        discard(old)
    return Path(tempfile.mkdtemp(prefix=f".{folder.name}~", dir=folder.parent))


def keep(partial: Path, folder: Path, record: Record) -> None:
    """Put a whole grade into its place."""
    note(partial, record)
    old = partial.with_name(f"{partial.name}-old")
    if folder.exists():
        folder.rename(old)
    partial.rename(folder)
    discard(old)


def note(folder: Path, record: Record) -> None:
    """Write down beside a grade what it depended on."""
    replace(folder / _FILE, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def discard(folder: Path) -> None:
    """Remove a folder that need not exist."""
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
