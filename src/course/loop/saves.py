"""Hears of files that are saved in the learner's tree, also by editors that write another file and rename it.

Knows which files matter; not what they mean."""

import contextlib
import os
import threading
from collections.abc import Iterable
from pathlib import Path

from course.build import SUFFIXES
from course.curriculum import Curriculum
from course.paths import SRC, extension_folder, source_file

_SUFFIXES = SUFFIXES | {".py", ".metal", ".txt"}
_COURSE = SRC / "course"
_QUIET = 40  # ms without another event that end a save
_LONGEST = 200  # ms: the longest wait for that


class Tree:
    """The learner's files: the package and its extension folder."""

    def __init__(self, curriculum: Curriculum, package: Path) -> None:
        self.around = package.parent.resolve()
        named = (package, extension_folder(package))
        inner = {*named, *(source_file(package, name).parent for name in curriculum.files)}
        # Where these are links, some systems tell the link's name and some what is behind it.
        self.folders = tuple(dict.fromkeys([*named, *(folder.resolve() for folder in named)]))
        self._inner = inner | {folder.resolve() for folder in inner}

    def holds(self, path: Path) -> bool:
        """Whether a change at `path` may change what the code does: no hidden files, nothing that is built."""
        folder = next((folder for folder in self.folders if path.is_relative_to(folder)), None)
        if folder is None:
            return False
        parts = path.relative_to(folder).parts
        if any(part.startswith(".") or part in ("build", "__pycache__") for part in parts):
            return False
        return path.suffix in _SUFFIXES or path in self._inner

    def stamps(self) -> dict[Path, tuple[int, int]]:
        """When each file was written, and how large it is."""
        found = {}
        for folder in self.folders:
            with contextlib.suppress(OSError):  # a folder that vanishes meanwhile
                for path in filter(self.holds, folder.rglob("*.*")):
                    status = path.stat()
                    found[path] = (status.st_mtime_ns, status.st_size)
        return found


class Saves:
    """Collects changed files while it is open; `fileno` is readable when there are some."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._changed: set[Path] = set()
        self._lock = threading.Lock()
        self._read, self._write = os.pipe()
        self._stop = threading.Event()
        self.problem = ""
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> "Saves":
        self._thread.start()
        return self

    def __exit__(self, *details: object) -> None:
        self._stop.set()
        self._thread.join(2.0)

    def fileno(self) -> int:
        return self._read

    def take(self) -> set[Path]:
        """The files that changed since the last time."""
        os.read(self._read, 4096)
        with self._lock:
            changed, self._changed = self._changed, set()
        return changed

    def _listen(self) -> None:
        try:
            try:
                self._watch(False)
            except OSError:  # the system has no more watches to give: look at the files several times a second
                self._watch(True)
        except (OSError, RuntimeError) as error:
            self.problem = str(error)
            os.write(self._write, b"!")

    def _watch(self, polling: bool) -> None:
        import watchfiles

        events = watchfiles.watch(
            *self._places(),
            watch_filter=lambda change, path: self._matters(Path(path)),
            debounce=_LONGEST,
            step=_QUIET,
            stop_event=self._stop,
            rust_timeout=500,
            raise_interrupt=False,
            force_polling=polling or None,
            ignore_permission_denied=True,
        )
        for changes in events:
            with self._lock:
                self._changed |= {Path(path) for _, path in changes}
            os.write(self._write, b"s")

    def _places(self) -> Iterable[Path]:
        """The folder around the packages, so that one which is deleted and made anew is seen; and where links lead."""
        yield self._tree.around
        yield from (folder for folder in self._tree.folders if not folder.is_relative_to(self._tree.around))

    def _matters(self, path: Path) -> bool:
        """The learner's files, and those of the course itself."""
        return self._tree.holds(path) or (path.suffix == ".py" and path.is_relative_to(_COURSE))
