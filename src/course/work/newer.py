"""Another version of the course: from a folder, an archive, or a git repository (its committed state only)."""

import os
import re
import subprocess
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from course.errors import CourseError

_CLONE_SECONDS = 300.0
_MOST_BYTES, _MOST_FILES = 1 << 30, 50_000  # of an unpacked archive
_PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # of others, Python unpacks a whole file at once


@contextmanager
def newer_version(source: str, branch: str | None) -> Iterator[Path]:
    """The root of the course at `source`, unpacked for as long as it is needed. Raises CourseError."""
    path = Path(source).expanduser()
    is_git = _is_url(source) or (path / ".git").exists() or (path / "HEAD").is_file()
    if branch is not None and not is_git:
        raise CourseError(f"--branch {branch} needs a git repository: {source} is none")
    with tempfile.TemporaryDirectory(prefix="tiny-llm-") as folder:
        unpacked = Path(folder) / "course"
        if is_git:
            _clone(source if _is_url(source) else path.resolve().as_uri(), branch, unpacked)
        elif path.is_dir():
            unpacked = path.resolve()
        elif path.is_file():
            _unzip(path, unpacked)
        else:
            raise CourseError(f"--from {source} does not exist: give a folder, a .zip file or the URL of a repository")
        yield _root(unpacked, source)


def version_of(root: Path) -> str:
    """The version that pyproject.toml names; "0" where it names none."""
    try:
        return str(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return "0"


def is_older(version: str, other: str) -> bool:
    """By their numbers: "0.9" is older than "0.10"."""
    return _numbers(version) < _numbers(other)


def default_source(root: Path) -> str:
    """The URL of the repository that this checkout came from. Raises CourseError where git knows none."""
    for remote in ("upstream", "origin"):
        if url := git_output(root, "remote", "get-url", remote).strip():
            return url
    raise CourseError("where is the newer version? Say --from FOLDER, FILE.zip, or the URL of a repository")


def git_output(root: Path, *arguments: str) -> str:
    """What git prints in `root`; nothing where it fails or `root` is no repository of its own."""
    if not (root / ".git").exists():
        return ""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, timeout=30, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else ""


def _is_url(source: str) -> bool:
    return "://" in source or re.match(r"[\w.-]+@[\w.-]+:", source) is not None


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _clone(url: str, branch: str | None, target: Path) -> None:
    wanted = ["--branch", branch] if branch else []
    environment = {"GIT_SSH_COMMAND": "ssh -oBatchMode=yes"} | os.environ | {"GIT_TERMINAL_PROMPT": "0"}
    command = ["git", "clone", "--quiet", "--depth", "1", *wanted, "--", url, str(target)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, timeout=_CLONE_SECONDS, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise CourseError("git is missing: install it, or unpack the newer version and name its folder") from None
    except subprocess.TimeoutExpired:
        raise CourseError(f"git clone {url} took more than {_CLONE_SECONDS:g} s: try a faster network") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        raise CourseError(f"git clone {url} failed ({said[-1]}): check the address and --branch")


def _unzip(path: Path, target: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            size = sum(entry.file_size for entry in entries)
            if size > _MOST_BYTES or len(entries) > _MOST_FILES:
                raise CourseError(f"{path} unpacks to {size >> 20} MiB in {len(entries)} files: that is no course")
            if any(entry.compress_type not in _PLAIN for entry in entries):
                raise CourseError(f"{path} is packed in an unusual way: zip it with ordinary compression, deflate")
            for entry in entries:
                written = Path(archive.extract(entry, target))
                if not entry.is_dir() and (entry.external_attr >> 16) & 0o100:
                    written.chmod(0o755)
    except CourseError:
        raise
    except Exception as error:  # zipfile raises nearly anything for a broken file
        raise CourseError(f"{path} cannot be unpacked ({error}): give a .zip file of the course") from None


def _root(folder: Path, source: str) -> Path:
    """The folder with the course in it: that one, or the only one in it."""
    inside = [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    for root in [folder, *(inside if len(inside) == 1 else [])]:
        if (root / "src" / "course").is_dir() and any((root / "curriculum").glob("week*.toml")):
            return root
    raise CourseError(f"{source} holds no course (src/course and curriculum/weekN.toml): name its root folder")
