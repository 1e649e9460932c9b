"""The students' repository as files in memory: no solutions, the untouched starter, the class's points."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from course.curriculum import Curriculum
from course.errors import CourseError
from course.grading.course_file import Course
from course.paths import ROOT, source_file
from course.release import adapt
from course.release.archive import zipped
from course.release.points import with_points
from course.release.readme import readme
from course.release.selection import rules_for, select
from course.release.weeks import CHAPTERS, contents, without_later
from course.release.workflow import workflow
from course.work.owned import RELEASED
from course.work.place import HERE, Place
from course.work.pristine import pristine
from course.work.strangers import EXTRA_FILES

KEPT = (
    "AGENTS.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    ".devcontainer",
    ".gitignore",
    "benches",
    "book",
    "curriculum",
    "models",
    "pdm.lock",
    "pyproject.toml",
    "run",
    "src/course",
    "tests_refsol",
)
STARTER_ZIP = "curriculum/starter.zip"
RECORD = RELEASED[1:]
SUMMARY = f"{CHAPTERS}SUMMARY.md"
WORKFLOW = ".github/workflows/classroom.yml"


@dataclass(frozen=True)
class Student:
    """A class's repository: `weeks` are in it, `later` ones are not."""

    files: dict[str, bytes]
    executable: frozenset[str]
    left_out: dict[str, list[str]]
    weeks: tuple[int, ...]
    later: tuple[int, ...]


def student(course: Course, last: int | None = None, place: Place = HERE) -> Student:
    """Build it, with the weeks up to `last` (None: the last graded one). Raises CourseError."""
    curriculum = course.curriculum
    last = curriculum.week(last).week if last is not None else max(day.week for day in course.days)
    chosen = select(place.root, KEPT, rules_for(course, place.root))
    kept = Curriculum(tuple(week for week in curriculum.weeks if week.week <= last))
    files = without_later(chosen.files, last)
    files[SUMMARY] = contents(files[SUMMARY].decode(), files).encode()
    files |= adapt.chapters(files)
    files |= _registry(files, kept, course)
    starter = pristine(curriculum, place)
    files |= {starter_name(name): content for name, content in starter.items()}
    files[STARTER_ZIP] = zipped(starter)
    files |= _house(files, course, kept)
    own = files.keys() - set(map(starter_name, starter))
    files[RECORD] = record({name: files[name] for name in own})
    weeks, later = (
        tuple(week.week for week in curriculum.weeks if (week.week <= last) is kept) for kept in (True, False)
    )
    return Student(dict(sorted(files.items())), chosen.executable, chosen.left_out, weeks, later)


def _registry(files: dict[str, bytes], kept: Curriculum, course: Course) -> dict[str, bytes]:
    """The weeks' files with the points of the graded tasks."""
    changed = {}
    for week in kept.weeks:
        name = f"curriculum/week{week.week}.toml"
        points = {task: course.points_of(task) for task in course.tasks if task.week == week.week}
        changed[name] = with_points(name, files[name].decode(), points).encode()
    return changed


def starter_name(name: str) -> str:
    """Where the file that the registry calls `name` is in a repository."""
    return source_file(Place.of(ROOT).package, name).relative_to(ROOT).as_posix()


def _house(files: dict[str, bytes], course: Course, kept: Curriculum) -> dict[str, bytes]:
    """README and workflow anew, and the house files that a class reads otherwise."""
    commands = frozenset(_commands(files))
    graded = [day for day in course.days if day in kept.days]
    if not graded:
        raise CourseError("no graded day is among these weeks: ask for more --weeks, or change [graded]")
    changed = {
        "README.md": readme(course, kept, graded),
        WORKFLOW: workflow(graded, course.points_of).encode(),
    }
    if course.extra_files:
        changed[EXTRA_FILES] = "".join(f"{name}\n" for name in course.extra_files).encode()
    edits: dict[str, Callable[[str], str]] = {
        "pyproject.toml": lambda text: adapt.pyproject(text, commands),
        "AGENTS.md": adapt.agents,
        ".devcontainer/devcontainer.json": adapt.devcontainer,
    }
    return changed | {name: edit(files[name].decode()).encode() for name, edit in edits.items()}


def record(files: Mapping[str, bytes]) -> bytes:
    """What `update` reads later: the course's files as they were delivered. Names begin with a slash there."""
    sums = {f"/{name}": hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return (json.dumps({"format": 1, "files": sums}, indent=0, sort_keys=True) + "\n").encode()


def _commands(files: dict[str, bytes]) -> list[str]:
    folder = "src/course/commands/"
    modules = [name.removeprefix(folder).removesuffix(".py") for name in files if name.startswith(folder)]
    return [module.replace("_", "-") for module in modules]
