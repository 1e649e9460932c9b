"""The one way in which commands change the learner's files: prepared beside, saved, then replaced all at once.

The caller holds `locked(place)`, from before it reads what it changes."""

import os
import signal
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from course.errors import CourseError
from course.work.place import Place
from course.work.saved import Saved, save


def change(files: Mapping[str, bytes | None], reason: str, place: Place, keep: Iterable[str] = ()) -> Saved | None:
    """Give files new content, None deletes one. `keep` names more files that belong into the saved copy.

    Returns the saved copy; None where nothing was to change. Raises CourseError before anything is changed.
    """
    differing = {name: content for name, content in files.items() if place.read(name) != content}
    if not differing:
        return None
    targets = {name: _target(place, name) for name in differing}
    staged: dict[str, Path] = {}
    try:
        for name, content in differing.items():
            if content is not None:
                staged[name] = _stage(targets[name], content)
            elif targets[name].exists():
                _may_delete(targets[name])
        saved = save(reason, {*differing, *keep}, place)
    except BaseException as error:
        for path in staged.values():
            path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise CourseError(f"cannot write {place.show(name)} ({error.strerror}): nothing was changed") from None
        raise
    _replace(differing, staged, targets, saved)
    return saved


def _target(place: Place, name: str) -> Path:
    """The file to replace: what a link points to, but never a file of the reference."""
    path = place.file(name)
    real = Path(os.path.realpath(path))
    if not name.startswith("/") and real.is_relative_to(os.path.realpath(place.reference)):
        raise CourseError(f"{place.show(name)} is a link into the reference: replace the link by a copy first")
    if path.is_dir():
        raise CourseError(f"{place.show(name)} is a folder, but the course has a file there: move the folder away")
    return real


def _stage(target: Path, content: bytes) -> Path:
    """The new content beside the file, with the mode of the file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), _mode(target))
    except BaseException:
        os.unlink(name)
        raise
    return Path(name)


def _mode(target: Path) -> int:
    with suppress(OSError):
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _may_delete(path: Path) -> None:
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(13, "the folder is read-only", str(path))


def _replace(
    files: Mapping[str, bytes | None], staged: Mapping[str, Path], targets: Mapping[str, Path], saved: Saved
) -> None:
    """A few milliseconds in which Ctrl-C waits."""
    try:
        with _uninterrupted():
            for name in files:
                if name in staged:
                    os.replace(staged[name], targets[name])
                else:
                    targets[name].unlink(missing_ok=True)
    except OSError as error:
        for path in staged.values():
            path.unlink(missing_ok=True)
        raise CourseError(
            f"stopped half-way at {error.filename} ({error.strerror}): `pdm run restore {saved.name}` brings all back"
        ) from None


@contextmanager
def _uninterrupted() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
