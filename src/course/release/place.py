"""Writes a release into a folder: an empty one, or that of an earlier release, in which no change by hand is lost."""

import contextlib
import hashlib
import os
import tempfile
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from course.errors import CourseError
from course.paths import ROOT
from course.release.student import RECORD, STARTER_ZIP, starter_name
from course.work.owned import delivered
from course.work.place import Place


@dataclass(frozen=True)
class Plan:
    """What writing a release changes in a folder: names of files. `lost` were changed by hand there."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    lost: tuple[str, ...]


def plan(root: Path, files: Mapping[str, bytes]) -> Plan:
    """Compare; writes nothing. Raises CourseError for a folder that is neither empty nor an earlier release."""
    check_folder(root)
    before = _earlier(root)
    found = {name: _content(root / name) for name in files.keys() | before.keys()}
    removed = [name for name in before.keys() - files.keys() if found[name] is not None]
    changed = [name for name in files if found[name] not in (None, files[name])]
    edited = [name for name in (*removed, *changed) if _digest(found[name] or b"") != before.get(name)]
    added = [name for name in files if found[name] is None]
    return Plan(*(tuple(sorted(names)) for names in (added, changed, removed, edited)))


def check_folder(root: Path) -> None:
    """Raises CourseError for a place where a release would be in the way of something else."""
    if root.exists() and not root.is_dir():
        raise CourseError(f"{root} is a file: name a new folder, or that of an earlier release")
    if root.resolve().is_relative_to(ROOT) or ROOT.is_relative_to(root.resolve()):
        raise CourseError(f"{root} is in this repository, or around it: name a folder elsewhere")
    used = root.is_dir() and any(entry.name != ".git" for entry in root.iterdir())
    if used and not (root / STARTER_ZIP).is_file():
        raise CourseError(f"{root} is not empty and holds no earlier release: name a new folder")


def write(root: Path, files: Mapping[str, bytes], executable: Collection[str], changes: Plan) -> None:
    """Make the folder hold `files`, and remove those of the earlier release that are in it no more.

    What is known of the release comes last: after an interruption the same command goes on. Raises CourseError.
    """
    names = sorted((*changes.added, *changes.changed), key=lambda name: name in (RECORD, STARTER_ZIP))
    for name in names:
        write_file(root / name, files[name], 0o755 if name in executable else 0o644)
    for name in changes.removed:
        with contextlib.suppress(OSError):  # folders that hold something else stay
            (root / name).unlink()
            os.removedirs((root / name).parent)


def write_file(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Replace one file in one step. Raises CourseError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".release-") as folder:
            part = Path(folder, path.name)
            part.write_bytes(content)
            part.chmod(mode)
            os.replace(part, path)
    except OSError as error:
        raise CourseError(f"cannot write {path} ({error.strerror}): name another place") from None


def _earlier(root: Path) -> dict[str, str]:
    """The files of the release that the folder holds, with their digests."""
    if not (root / STARTER_ZIP).is_file():
        return {}
    try:
        with zipfile.ZipFile(root / STARTER_ZIP) as archive:
            starter = {starter_name(name): _digest(archive.read(name)) for name in archive.namelist()}
    except zipfile.BadZipFile as error:
        raise CourseError(f"{root / STARTER_ZIP} is damaged ({error}): release into a new folder") from None
    course = {name[1:]: digest for name, digest in delivered(Place.of(root)).items()}
    return course | starter | {RECORD: _digest(_content(root / RECORD) or b"")}


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CourseError(f"cannot read {path} ({error.strerror}): release into a new folder") from None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
