"""Saved copies of files, taken before a command changes them, and brought back byte for byte.

A copy is a folder `.course/saved/TIME-REASON/` with `manifest.json`, `mine/` (the learner's files) and `course/` (files
of the course, for `update`). Nothing here deletes a copy."""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import msgspec

from course.errors import CourseError
from course.work.place import HERE, Place

LATEST = "latest"
_FORMAT = 1


class Entry(msgspec.Struct, frozen=True):
    """One file as it was."""

    size: int
    sha256: str
    mode: int


class Manifest(msgspec.Struct, frozen=True):
    """What a copy holds; a file that is None did not exist then."""

    reason: str
    time: datetime
    files: dict[str, Entry | None]
    format: int = _FORMAT


@dataclass(frozen=True)
class Saved:
    """One saved copy."""

    folder: Path
    manifest: Manifest

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.manifest.files.values() if entry)

    def path(self, name: str) -> Path:
        """Where the copy of a file is."""
        return self.folder / "course" / name[1:] if name.startswith("/") else self.folder / "mine" / name

    def read(self, name: str) -> bytes | None:
        """A file as it was; None where it did not exist. Raises CourseError where the copy was damaged since."""
        entry = self.manifest.files[name]
        if entry is None:
            return None
        try:
            content = self.path(name).read_bytes()
        except OSError as error:
            raise CourseError(f"cannot read {self.path(name)} ({error.strerror}): the saved copy is damaged") from None
        if hashlib.sha256(content).hexdigest() != entry.sha256:
            raise CourseError(f"{self.path(name)} was changed after it was saved: take what you need from it by hand")
        return content

    def differing(self, place: Place = HERE) -> list[str]:
        """The files that are not now as they were then."""
        return [name for name, entry in self.manifest.files.items() if not _same(place.file(name), entry)]


def save(reason: str, names: Iterable[str] | None = None, place: Place = HERE) -> Saved:
    """Copy the files `names` (all of the learner's by default). Raises CourseError and leaves nothing half-done."""
    names = sorted(place.names() if names is None else set(names))
    temporary: Path | None = None
    try:
        place.saved.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".", dir=place.saved))
        saved = Saved(temporary, Manifest(reason, datetime.now(UTC), {}))
        for name in names:
            saved.manifest.files[name] = _copy(place.file(name), saved.path(name))
        manifest = msgspec.json.format(msgspec.json.encode(saved.manifest), indent=1)
        (temporary / "manifest.json").write_bytes(manifest)
        temporary.chmod(0o755)
        return Saved(_rename(temporary, place.saved / _folder_name(saved.manifest)), saved.manifest)
    except BaseException as error:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError | UnicodeEncodeError):
            raise CourseError(
                f"your files cannot be saved ({_told(error)}): nothing was changed, mend that first"
            ) from None
        raise


def saved_copies(place: Place = HERE) -> list[Saved]:
    """All copies, the newest first; a folder without a readable manifest is none."""
    found = []
    for path in place.saved.glob("*/manifest.json"):
        try:
            found.append(Saved(path.parent, msgspec.json.decode(path.read_bytes(), type=Manifest)))
        except (OSError, msgspec.DecodeError):
            continue
    return sorted(found, key=lambda saved: (saved.manifest.time, saved.name), reverse=True)


def find(name: str, place: Place = HERE) -> Saved:
    """The copy of that name, or of a beginning that fits one only, or the newest for "latest". Raises CourseError."""
    copies = saved_copies(place)
    if not copies:
        raise CourseError("there is no saved copy: `reset`, `checkout`, `update` and `starter --force` make them")
    if name == LATEST:
        return copies[0]
    exact = [saved for saved in copies if saved.name == name]
    fitting = exact or [saved for saved in copies if saved.name.startswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    problem = "fits more than one saved copy" if fitting else "is no saved copy"
    names = ", ".join(saved.name for saved in (fitting or copies)[:5])
    raise CourseError(f"{name!r} {problem}: choose from {names} (pdm run restore --list)")


def _told(error: OSError | UnicodeEncodeError) -> str:
    named = isinstance(error, OSError) and error.filename
    return f"{error.strerror}: {error.filename}" if named else str(error)


def _copy(source: Path, target: Path) -> Entry | None:
    """Copy one file through memory of a fixed size."""
    try:
        stream = source.open("rb")
    except FileNotFoundError:
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with stream, target.open("wb") as copy:
        while block := stream.read(1 << 20):
            digest.update(block)
            size += copy.write(block)
        mode = os.fstat(stream.fileno()).st_mode & 0o777
    return Entry(size, digest.hexdigest(), mode)


def _same(path: Path, entry: Entry | None) -> bool:
    try:
        found = path.stat()
    except OSError:
        return entry is None
    now = (found.st_ino, found.st_mtime_ns)
    return entry is not None and found.st_size == entry.size and _digest(path, now) == entry.sha256


@cache
def _digest(path: Path, now: tuple[int, int]) -> str:
    """Read once for all copies that are compared with it. now: inode and time, which tell it from a later file."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


def _folder_name(manifest: Manifest) -> str:
    word = re.sub(r"[^A-Za-z0-9.]+", "-", manifest.reason).strip("-.") or "saved"
    return f"{manifest.time.astimezone():%Y%m%d-%H%M%S}-{word}"


def _rename(temporary: Path, wanted: Path) -> Path:
    """Give the folder its name, with a number behind it where another copy of this second has it."""
    for number in range(1, 1000):
        target = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        if not target.exists():
            return temporary.rename(target)
    raise FileExistsError(17, "too many copies of one second", str(wanted))
