"""Submissions of which one knows what they must earn: the reference, the starter, and copies between the two."""

import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from course.curriculum import Curriculum, Day, Task
from course.errors import CourseError
from course.mutants import Mutant, load_mutants
from course.paths import is_extension, source_file
from course.work.checkpoint import render_checkpoint
from course.work.pristine import has_reference, pristine

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Copy:
    """A submission: its files when asked for, the days to grade, and the tasks that must earn their points."""

    name: str
    files: Callable[[], Files]
    days: Sequence[Day]
    earning: frozenset[Task]
    hand_in: Callable[[Files, Path], Path]


def copies(curriculum: Curriculum, days: Sequence[Day]) -> Iterator[Copy]:
    """All of them for these days; without a reference only the untouched starter."""
    yield Copy("the untouched starter", lambda: pristine(curriculum), days, frozenset(), as_zip)
    if not has_reference():
        return
    tasks = frozenset(task for day in days for task in day.tasks)
    yield Copy("the reference", lambda: render_checkpoint(curriculum, lambda task: True), days, tasks, as_folder)
    for _, group in groupby(days, key=lambda day: day.week):
        week = list(group)
        yield _half(curriculum, week)
        yield from (_mistaken(curriculum, day) for day in dict.fromkeys((week[0], week[-1])))


def _half(curriculum: Curriculum, days: Sequence[Day]) -> Copy:
    """Done up to the middle of a week, within a day if possible."""
    own = [task for day in days for task in day.tasks]
    later = own[len(own) // 2 :]
    first_open = next((task for task in later if task.number > 1), later[0])
    done = frozenset(curriculum.tasks[: curriculum.tasks.index(first_open)])
    name = f"everything before {first_open.label}"
    return Copy(name, lambda: render_checkpoint(curriculum, done.__contains__), days, done & set(own), as_tar)


def _mistaken(curriculum: Curriculum, day: Day) -> Copy:
    """The reference with a known mistake in the last task of a day: nothing else of the day needs that task."""
    last = day.tasks[-1]
    mutant = next((m for m in load_mutants(day.mutants) if m.task == last.number), None)
    if mutant is None:
        raise CourseError(f"{day.mutants} has no mutant of {last.label}: write one")
    name = f"{last.label} with the mistake {mutant.name}"
    return Copy(name, lambda: _changed(curriculum, mutant), [day], frozenset(day.tasks[:-1]), as_folder)


def _changed(curriculum: Curriculum, mutant: Mutant) -> Files:
    files = render_checkpoint(curriculum, lambda task: True)
    text = files[mutant.file].decode()
    if text.count(mutant.old) != 1:
        raise CourseError(f"the text of the mutant {mutant.name} is not once in {mutant.file}: run `pdm run mutants`")
    return files | {mutant.file: text.replace(mutant.old, mutant.new).encode()}


def as_folder(files: Files, place: Path) -> Path:
    """A checkout's `src`."""
    for name, content in files.items():
        path = source_file(place / "src" / "tiny_llm", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return place


def as_zip(files: Files, place: Path) -> Path:
    """As browsers download a repository: all below one folder."""
    with zipfile.ZipFile(place.with_suffix(".zip"), "w") as archive:
        for name, content in files.items():
            archive.writestr(f"my-course-main/src/{_member(name)}", content)
    return place.with_suffix(".zip")


def as_tar(files: Files, place: Path) -> Path:
    """The two folders, packed."""
    with tarfile.open(place.with_suffix(".tar.gz"), "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"./{_member(name)}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return place.with_suffix(".tar.gz")


def _member(name: str) -> str:
    return name if is_extension(name) else f"tiny_llm/{name}"
