"""The one commit of a new students' repository, or one more for an update. Nothing else in the folder is added."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from course.errors import CourseError

_LIMIT = 120.0
_IDENTITY = {"NAME": "tiny_llm course", "EMAIL": "course@localhost"}


def commit(root: Path, names: Iterable[str], removed: Iterable[str], message: str) -> bool:
    """Commit these files, in a repository made if there is none. False where nothing differs. Raises CourseError."""
    if not (root / ".git").exists():
        _git(root, "init", "--quiet", "--initial-branch=main")
    paths = ("--pathspec-from-file=-", "--pathspec-file-nul")
    _git(root, "add", "--force", *paths, given="\0".join(sorted(names)))
    if gone := sorted(removed):
        _git(root, "rm", "--quiet", "--cached", "--ignore-unmatch", *paths, given="\0".join(gone))
    if not _git(root, "diff", "--cached", "--name-only", "--no-renames").strip():
        return False
    _git(root, "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--message", message)
    return True


def _git(root: Path, *command: str, given: str = "") -> str:
    """Its output. Variables of a git that called us name another repository; hooks and line endings are the user's."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own = ("-c", "core.autocrlf=false", "-c", f"core.hooksPath={os.devnull}", "-c", f"safe.directory={root.resolve()}")
    named = _identity(root, environment) if command[0] == "commit" else ()
    try:
        done = subprocess.run(
            ["git", *own, *named, *command],
            cwd=root,
            env=environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=_LIMIT,
        )
    except FileNotFoundError:
        raise CourseError("git is not installed: install it, or add --no-git") from None
    except subprocess.TimeoutExpired:
        raise CourseError(f"git {command[0]} takes longer than {_LIMIT:g} s in {root}: add --no-git") from None
    if done.returncode:
        reason = (done.stderr.strip() or "it says nothing").splitlines()[0]
        raise CourseError(f"git {command[0]} failed in {root} ({reason}): the files are written; commit them by hand")
    return done.stdout


def _identity(root: Path, environment: dict[str, str]) -> tuple[str, ...]:
    """A name for the commit where the user has told git none."""
    missing = []
    for key, value in _IDENTITY.items():
        name = f"user.{key.lower()}"
        found = subprocess.run(["git", "config", name], cwd=root, env=environment, capture_output=True, timeout=_LIMIT)
        if not found.stdout.strip():
            missing += ["-c", f"{name}={value}"]
    return tuple(missing)
