"""What a built library was made from, kept in a hidden file beside it.

The file also is the lock of whoever builds the library. Copied together with the library it stays true."""

import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from course.errors import CourseError
from course.toolchain import Toolchain


def fingerprint(files: dict[str, bytes], toolchain: Toolchain, module: str) -> str:
    """Changes with every source, the toolchain and the name of the module."""
    digest = hashlib.sha256(f"{module}\n{toolchain.identity}\n".encode())
    for name, content in files.items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def libraries(folder: Path, module: str) -> list[Path]:
    """The files from which Python can import `module`."""
    return sorted(folder.glob(f"{module}.*so"))


class Stamp:
    """The note beside the library `module` in `folder`."""

    def __init__(self, folder: Path, module: str) -> None:
        self._folder, self._module = folder, module
        self._path = folder / f".built{module}"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Whoever comes second waits, and finds the work done. Raises CourseError."""
        try:
            file = self._path.open("a")
        except OSError as error:
            raise CourseError(f"cannot write {self._path} ({error.strerror}): the library goes beside it") from None
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def fresh(self, made_from: str) -> Path | None:
        """The library, if it is the one that was made from this fingerprint."""
        found = libraries(self._folder, self._module)
        if len(found) != 1 or not self._path.exists():
            return None
        return found[0] if self._path.read_text(errors="replace") == _note(made_from, found[0]) else None

    def note(self, made_from: str, library: Path) -> None:
        """Remember what `library` was made from."""
        self._path.write_text(_note(made_from, library))  # in place: others wait for a lock on this very file


def _note(made_from: str, library: Path) -> str:
    return f"{made_from}\n{hashlib.sha256(library.read_bytes()).hexdigest()}\n"
