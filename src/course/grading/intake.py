"""The learner's files of a submission, and what is to be said about the rest. Runs nothing and imports nothing of it.

Only files in which the registry lists task symbols are taken, and those that the course file allows; all else in a
submission, above all what configures Python or pytest, is not looked at."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from course.curriculum import Curriculum
from course.grading.archive import is_archive, open_archive
from course.grading.layout import Layout, find_layouts
from course.grading.source import SUBMIT, Entry, Folder, Source, Unreadable, is_setting, is_skipped, revision
from course.grading.text import few, one_line

MOST_SIZE = 1 << 20
MOST_NOTES = 40
MOST_OTHERS = 32 << 20
_CODE = (".py", ".cpp", ".cc", ".c", ".h", ".hpp", ".metal", ".cmake")


class Intake(NamedTuple):
    """By the registry's names: `files` are graded, `missing` are not there, `others` are code that is not graded."""

    files: dict[str, bytes]
    missing: tuple[str, ...]
    others: dict[str, bytes]
    notes: tuple[str, ...]
    revision: str


def collect(submission: Path, curriculum: Curriculum, extra_files: Sequence[str] = ()) -> Intake:
    """Take the learner's files. Raises Unreadable where there are none."""
    source = _open(submission)
    entries = list(_relevant(source))
    layouts = find_layouts((entry.name for entry in entries if entry.kind == "file"), task_files(curriculum))
    if not layouts and (inner := _only_archive(source, entries)):
        return collect(inner, curriculum, extra_files)
    if not layouts:
        raise Unreadable(_nothing(entries))
    layout, *rest = layouts
    taker = _Taker(source, layout, {entry.name: entry.kind for entry in entries})
    files = taker.take([*task_files(curriculum), *extra_files])
    notes = _about_links(entries, layout) + taker.notes + _about_settings(entries, layout)
    if other := [_folder(other) for other in rest if other.package != layout.package]:
        notes.insert(0, f"taken from {_folder(layout)}; not looked at: {few(other)}")
    commit = revision(submission) if submission.is_dir() else ""
    return Intake(files, tuple(taker.missing), taker.others(files), _capped(notes), commit)


def task_files(curriculum: Curriculum) -> list[str]:
    """The files in which the learner writes."""
    return [name for name, symbols in curriculum.files.items() if symbols.tasks]


def _open(submission: Path) -> Source:
    if submission.is_dir():
        return Folder(submission)
    if submission.is_file():
        return open_archive(submission)
    raise Unreadable("there is no such file or folder" if not submission.exists() else "it is no file and no folder")


def _relevant(source: Source) -> Iterable[Entry]:
    return (entry for entry in source.entries() if not is_skipped(entry.name))


def _only_archive(source: Source, entries: list[Entry]) -> Path | None:
    """The one archive in a folder, as some platforms hand submissions over."""
    archives = [entry.name for entry in entries if entry.kind == "file" and is_archive(entry.name)]
    return source.root / archives[0] if isinstance(source, Folder) and len(archives) == 1 else None


def _nothing(entries: list[Entry]) -> str:
    links = [entry.name for entry in entries if entry.kind == "link"]
    more = f" (symbolic links are not followed: {few(links)})" if links else ""
    return f"none of the course's task files is in it{more}: {SUBMIT}"


class _Taker:
    """Reads files of one layout and notes what is odd about them."""

    def __init__(self, source: Source, layout: Layout, kinds: dict[str, str]) -> None:
        self._source, self._layout, self._kinds = source, layout, kinds
        self.notes: list[str] = []
        self.missing: list[str] = []

    def take(self, names: Iterable[str]) -> dict[str, bytes]:
        found = {}
        for name in names:
            place = self._layout.place(name)
            if place not in self._kinds:
                self.missing.append(name)
            elif (content := self._content(place)) is not None:
                found[name] = content
        return found

    def _content(self, place: str) -> bytes | None:
        """The bytes of a file; None, with a note, for what is none that can be graded."""
        if self._kinds[place] != "file":
            if self._kinds[place] == "special":
                self._odd(place, "is a pipe, a socket or a device")
            return None  # links are told of elsewhere, with those to folders
        try:
            content = self._source.read(place, MOST_SIZE + 1)
        except OSError as error:
            return self._odd(place, f"cannot be read ({error.strerror})")
        if len(content) > MOST_SIZE:
            return self._odd(place, f"is larger than {MOST_SIZE >> 20} MiB")
        self._check_text(place, content)
        return content

    def _odd(self, place: str, what: str) -> None:
        self.notes.append(f"{one_line(place)} {what}: the starter's file is used")

    def _check_text(self, place: str, content: bytes) -> None:
        """Such files are taken as they are: Python or the compiler says what is wrong, as it does elsewhere."""
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            self.notes.append(f"{one_line(place)} is UTF-16 text: save it as UTF-8")
        elif b"\0" in content:
            self.notes.append(f"{one_line(place)} holds bytes of value 0: it is no text")
        else:
            try:
                content.decode()
            except UnicodeDecodeError as error:
                self.notes.append(f"{one_line(place)} is not UTF-8 text at byte {error.start}: save it as UTF-8")

    def others(self, taken: dict[str, bytes]) -> dict[str, bytes]:
        """Code beside the files taken, by the names it would have; of too much code only the names."""
        found, left = {}, MOST_OTHERS
        for place, kind in self._kinds.items():
            name = self._layout.name(place)
            if kind == "file" and name and name not in taken and place.endswith(_CODE) and not is_setting(place):
                try:
                    found[name] = self._source.read(place, MOST_SIZE + 1) if left > 0 else b""
                except OSError:
                    found[name] = b""
                left -= len(found[name])
        return found


def _about_links(entries: list[Entry], layout: Layout) -> list[str]:
    """Links in the learner's folders, or on the way there."""
    links = [entry.name for entry in entries if entry.kind == "link"]
    inside = [name for name in links if _concerns(name, layout)]
    return [f"symbolic links are not followed; the starter's files are used: {few(inside)}"] if inside else []


def _concerns(name: str, layout: Layout) -> bool:
    return any(name.startswith(prefix) or f"{prefix}/".startswith(f"{name}/") for prefix in layout if prefix) or (
        not layout.package
    )


def _about_settings(entries: list[Entry], layout: Layout) -> list[str]:
    found = [entry.name for entry in entries if is_setting(entry.name) and _concerns(entry.name, layout)]
    return [f"settings of a submission are not used: {few(found)}"] if found else []


def _folder(layout: Layout) -> str:
    return one_line(layout.package) or "the top folder"


def _capped(notes: list[str]) -> tuple[str, ...]:
    return (*notes[:MOST_NOTES], *([f"and {len(notes) - MOST_NOTES} notes more"] if len(notes) > MOST_NOTES else []))
