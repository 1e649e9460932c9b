"""What an update does: the course's files are replaced, the learner's are merged; first as a plan, then in one step."""

from dataclasses import dataclass, field
from pathlib import Path

from course.curriculum import Curriculum, load
from course.errors import CourseError
from course.starter import read_package
from course.work.change import change
from course.work.fingerprints import FINGERPRINTS, fingerprint, fingerprints, record
from course.work.merge import merge
from course.work.newer import is_older, version_of
from course.work.owned import RECORD, changed_by_user, delivered, owned_files, record_of
from course.work.place import Place
from course.work.pristine import pristine
from course.work.saved import Saved

PENDING = "/.course/update/"  # where files with conflicts wait


@dataclass
class Update:
    """The new content of files, and what there is to say about them; names as in `Place`."""

    files: dict[str, bytes | None] = field(default_factory=dict)
    programs: list[str] = field(default_factory=list)  # course files that can be run
    course: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)  # course files that the user had changed
    dropped: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)  # other files beside the learner's, where nothing was recorded
    fresh: list[str] = field(default_factory=list)  # learner's files that were untouched or missing
    merged: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  # learner's files that the course no longer has
    reshaped: list[str] = field(default_factory=list)  # "file: function" with a new signature
    tasks: list[str] = field(default_factory=list)
    news: list[str] = field(default_factory=list)


def plan(curriculum: Curriculum, new: Path, place: Place) -> Update:
    """What is to be done for the version in the folder `new`. Raises CourseError for one that does not fit."""
    _check(new, place)
    update = Update()
    _plan_course(new, place, update)
    _plan_learner(curriculum, new, place, update)
    if update.conflicts:
        seen = {place.show(name): fingerprint(place.read(name)) for name in update.conflicts}
        update.files[FINGERPRINTS] = record(fingerprints(place) | seen)
    update.tasks = _new_tasks(curriculum, new)
    update.news = _new_lines(place.root / "CHANGELOG.md", new / "CHANGELOG.md")
    return update


def carry_out(update: Update, place: Place) -> Saved | None:
    """Write the plan; None where there was nothing to do. The caller holds the lock since before `plan`."""
    saved = change(update.files, "update", place, keep=place.names())
    for name in update.programs if saved else ():
        path = place.file(name)
        path.chmod(path.stat().st_mode | 0o111)
    return saved


def _check(new: Path, place: Place) -> None:
    if new == place.root:
        raise CourseError(f"{new} is this copy of the course itself: name the folder of the newer version")
    if is_older(version_of(new), version_of(place.root)):
        raise CourseError(
            f"version {version_of(new)} is older than this one, {version_of(place.root)}: unpack it beside this copy"
        )
    other = Place.of(new)
    if place.reference.is_dir() and not other.reference.is_dir():
        raise CourseError("that version has no reference solution and this copy has one: unpack it beside this copy")
    if other.reference.is_dir() and not place.reference.is_dir():
        raise CourseError(
            "that version holds the reference solution: ask your instructor for the new student's version"
        )


def _plan_course(new: Path, place: Place, update: Update) -> None:
    files = owned_files(new)
    for name, path in files.items():
        content = path.read_bytes()
        if place.read(name) == content:
            continue
        update.course.append(name)
        update.files[name] = content
        if path.stat().st_mode & 0o100:
            update.programs.append(name)
    record = delivered(place)
    gone = [name for name in record if name not in files and place.file(name).is_file()]
    edited = set(changed_by_user([*update.course, *gone], place))
    existing = [name for name in update.course if place.file(name).is_file()]
    update.edited = [name for name in existing if name in edited]
    update.dropped = [name for name in gone if name not in edited]
    update.files |= dict.fromkeys(update.dropped)
    if update.course or update.dropped:
        update.unknown = [] if record else [name for name in owned_files(place.root) if name not in files]
        update.files[RECORD] = record_of(files)


def _plan_learner(curriculum: Curriculum, new: Path, place: Place, update: Update) -> None:
    base, theirs = pristine(curriculum, place), _starter_of(new)
    for name in sorted(base.keys() | theirs.keys()):
        start, end, mine = base.get(name), theirs.get(name), place.read(name)
        if start == end or mine == end:
            continue
        if mine == start or mine is None:
            update.fresh.append(name)
            update.files[name] = end
        elif end is None:
            update.left.append(name)
        else:
            _plan_merge(name, mine, start or b"", end, place, update)


def _plan_merge(name: str, mine: bytes, start: bytes, end: bytes, place: Place, update: Update) -> None:
    result = merge(name, mine, start, end)
    update.reshaped += [f"{place.show(name)}: {function}" for function in result.reshaped]
    if result.conflicts:
        update.conflicts.append(name)
        update.files[PENDING + place.show(name)] = result.content
    elif result.content != mine:
        update.merged.append(name)
        update.files[name] = result.content


def _starter_of(new: Path) -> dict[str, bytes]:
    """The new version's untouched starter: its archive, or the package that is committed in it."""
    other = Place.of(new)
    if other.starter_zip.is_file():
        return pristine(Curriculum(()), Place(new, other.package, new / "no-reference"))
    return read_package(other.package)


def _new_tasks(curriculum: Curriculum, new: Path) -> list[str]:
    """Tasks that this version does not have; none where it cannot read the newer registry."""
    try:
        tasks = load(new / "curriculum").tasks
    except CourseError:
        return []
    known = {(task.label, task.title) for task in curriculum.tasks}
    return [f"{task.label}: {task.title}" for task in tasks if (task.label, task.title) not in known]


def _new_lines(old: Path, new: Path) -> list[str]:
    """Lines of the changelog that are new."""
    try:
        lines = new.read_text(encoding="utf-8").splitlines()
        known = set(old.read_text(encoding="utf-8").splitlines()) if old.is_file() else set()
    except (OSError, UnicodeDecodeError):
        return []
    return [line for line in lines if line.strip() and line not in known]
