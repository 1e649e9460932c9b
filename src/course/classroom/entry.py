"""What lies in a folder of submissions: one entry for each folder or archive. Does not know whose it is."""

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from course.errors import CourseError
from course.grading.archive import SUFFIXES
from course.grading.archive import is_archive as is_named_archive
from course.grading.text import one_line

_TEXT_ONLY = "_assignsubmission_onlinetext"  # Moodle: what was typed, beside what was uploaded
_BESIDE = ("__MACOSX", "submission_metadata.yml")
_LISTS = (".csv", ".yml", ".yaml", ".html", ".txt", ".json", ".toml", ".md")
_EXPORTS = (
    re.compile(r"(?P<name>[^_]+)_(?P<number>\d+)_assignsubmission_.*"),  # Moodle
    re.compile(r"(?P<name>[^_]+)(?:_LATE)?_(?P<number>\d+)_\d+_.*", re.IGNORECASE),  # Canvas
)


@dataclass(frozen=True)
class Entry:
    """`name`: as it lies there, without an archive's ending, fit to be shown; `path` is what to grade."""

    name: str
    path: Path

    @property
    def exported(self) -> tuple[str, str] | None:
        """The person's name and number, where the entry is named as Moodle and Canvas name theirs."""
        found = next((match for form in _EXPORTS if (match := form.fullmatch(self.name))), None)
        return (found["name"], found["number"]) if found else None


def find_entries(folder: Path) -> tuple[list[Entry], list[str]]:
    """The entries, by name, and the names of what else lies there and was left out. Raises CourseError for none."""
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise CourseError(f"{folder}: {error.strerror}: name the folder of the submissions") from None
    used = [path for path in paths if _is_submission(path)]
    if not used:
        raise CourseError(f"{folder} holds no submission: put a folder or a .zip for each student there")
    others = [path for path in paths if path not in used and path.suffix not in _LISTS and path.name not in _BESIDE]
    return [_entry(path) for path in used], [shown(path.name) for path in others]


def _is_submission(path: Path) -> bool:
    if path.is_symlink() or path.name in _BESIDE or _TEXT_ONLY in path.name:
        return False
    return path.is_dir() or is_archive(path)


def is_archive(path: Path) -> bool:
    """Whether its name says so; what is inside shows when it is unpacked."""
    return path.is_file() and is_named_archive(path.name)


def shown(name: str) -> str:
    """A name without what a terminal or a file could take for a command."""
    return one_line(unicodedata.normalize("NFC", name.encode(errors="surrogateescape").decode(errors="replace")))


def _entry(path: Path) -> Entry:
    name = path.name
    if path.is_file():
        name = name[: -len(max((end for end in SUFFIXES if name.lower().endswith(end)), key=len))]
    return Entry(shown(name), path)
