"""`submission_metadata.yml` of a Gradescope export: who handed in each folder, and when. All else in it is ignored."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from course.classroom.entry import shown
from course.classroom.student import Student
from course.errors import CourseError

NAME = "submission_metadata.yml"
_MOST_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Handed:
    """One folder of the export."""

    students: tuple[Student, ...]
    when: datetime | None


def read_export(folder: Path) -> dict[str, Handed]:
    """By the name of the folder; empty where `folder` is no export of Gradescope's."""
    path = folder / NAME
    if not path.is_file():
        return {}
    found = _load(path)
    if not isinstance(found, Mapping):
        raise CourseError(f"{path} is not a list of submissions: export them again, or remove it and use --times")
    return {str(name): _handed(entry) for name, entry in found.items() if isinstance(entry, Mapping)}


def _load(path: Path) -> object:
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        """Ruby's own tags mean no more than the mapping or the text below them."""

    def plain(loader: yaml.SafeLoader, tag: str, node: yaml.Node) -> object:
        if isinstance(node, yaml.MappingNode):
            return loader.construct_mapping(node, deep=True)
        return loader.construct_sequence(node) if isinstance(node, yaml.SequenceNode) else node.value

    Loader.add_multi_constructor("!", plain)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise CourseError(f"{path} is larger than {_MOST_BYTES // 2**20} MiB: remove it and use --times")
        return yaml.load(path.read_bytes(), Loader)
    except (yaml.YAMLError, RecursionError, ValueError, OSError) as error:
        line = str(error).splitlines()[0]
        raise CourseError(f"{path} cannot be read ({line}): export it again, or remove it and use --times") from None


def _handed(entry: Mapping[object, object]) -> Handed:
    submitters = _field(entry, "submitters")
    people = submitters if isinstance(submitters, list) else []
    students = (_student(person) for person in people if isinstance(person, Mapping))
    return Handed(tuple(filter(None, students)), _time(_field(entry, "created_at")))


def _student(person: Mapping[object, object]) -> Student | None:
    name, sid, email = (shown(str(_field(person, key) or "")) for key in ("name", "sid", "email"))
    identity = sid or email or name
    return Student(identity, name or identity, email) if identity else None


def _field(entry: Mapping[object, object], name: str) -> object:
    """Ruby writes its keys with a colon before them."""
    return entry.get(f":{name}", entry.get(name))


def _time(value: object) -> datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.replace(" UTC", "+00:00"))
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)  # Gradescope's own clock is UTC
