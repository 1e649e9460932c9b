"""The time of a repository's newest commit, without trusting anything in the repository.

The settings in a stranger's `.git` can make git run programs. So git never sees them: the commit is read from an empty
repository of our own that borrows the stranger's objects. The time itself is what the author's machine said."""

import os
import re
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from course.grading.source import revision

_LIMIT = 20.0
_MOST_BYTES = str(16 << 20)
_COMMITTER = re.compile(r"^committer .* (\d{1,12}) [+-]\d{4}$", re.MULTILINE)


def commit_time(folder: Path) -> datetime | None:
    """When HEAD of the checkout `folder` was committed; None where that cannot be found out."""
    if (folder / ".git").is_symlink() or not (commit := revision(folder)):
        return None
    found = _COMMITTER.search(_read_commit(folder / ".git" / "objects", commit).partition("\n\n")[0])
    try:
        return datetime.fromtimestamp(int(found[1]), UTC) if found else None
    except (ValueError, OverflowError, OSError):
        return None


def _read_commit(objects: Path, commit: str) -> str:
    with tempfile.TemporaryDirectory(prefix="tiny-llm-") as own:
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": own,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ALLOC_LIMIT": _MOST_BYTES,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects),
        }
        try:
            _git(environment, "init", "--quiet", "--bare", own)
            return _git(environment, "--git-dir", own, "cat-file", "commit", commit)
        except (OSError, subprocess.SubprocessError):
            return ""


def _git(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], env=environment, capture_output=True, timeout=_LIMIT, check=True)
    return done.stdout.decode(errors="replace")
