"""The learner's files: there, readable, writable, with line ends of Unix."""

import os
from pathlib import Path

from course.curriculum import load
from course.doctor.finding import Finding
from course.paths import SRC, source_file

_MOST = 3


def probe(full: bool) -> Finding:
    """Missing or unreadable files stop the days that list them."""
    package = SRC / "tiny_llm"
    names = list(load().files)
    if not package.is_dir():
        return Finding.fail("src/tiny_llm is missing: there is nothing to write in", "pdm run starter")
    paths = {name: source_file(package, name) for name in names}
    missing = [name for name, path in paths.items() if not path.is_file()]
    closed = [name for name, path in paths.items() if path.is_file() and not os.access(path, os.R_OK)]
    if missing or closed:
        said = [f"missing: {_few(missing)}"] * bool(missing) + [f"not readable: {_few(closed)}"] * bool(closed)
        fix = _anew([paths[name] for name in missing]) if missing else f"chmod u+rw {paths[closed[0]]}"
        return Finding.fail("; ".join(said), fix, stops=tuple(f"file:{name}" for name in missing + closed))
    fixed = [name for name, path in paths.items() if not os.access(path, os.W_OK)]
    if fixed:
        return Finding.warn(f"read-only: {_few(fixed)}", "chmod -R u+w src/tiny_llm src/extensions")
    windows = [name for name, path in paths.items() if b"\r\n" in path.read_bytes()]
    if windows:
        fix = f"sed -i 's/\\r$//' {source_file(package, windows[0]).relative_to(SRC.parent)}"
        note = "git config core.autocrlf input"
        return Finding.warn(f"line ends of Windows (CRLF): {_few(windows)}", f"{note} && {fix}")
    return Finding.ok(f"{len(names)} files, all there")


def _anew(paths: list[Path]) -> str:
    """Each file as it was at the start; a saved copy may hold the learner's."""
    files = " ".join(f"--file {path.relative_to(SRC.parent)}" for path in paths)
    return f"pdm run reset {files} (as at the start; saved copies: pdm run restore --list)"


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more
