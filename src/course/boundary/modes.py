"""The three modes of the boundary, and which of them this machine allows: found out by trying."""

import functools
import os
import sys
import tempfile
from pathlib import Path

from course.errors import CourseError

MODES = {
    "namespaces": "Linux namespaces: sees only what it needs, no network, no other process",
    "user": "a user of its own for each submission: cannot touch files or processes of anybody else",
    "limits": "the grader's own user: limits and deadlines only",
}
"""Best first."""


@functools.cache
def problem(mode: str) -> str | None:
    """Why a mode does not work here, in one line; None if it does. Tries it, which takes about a second."""
    if mode == "namespaces" and sys.platform != "linux":
        return f"{sys.platform} has no namespaces"
    if mode == "user" and os.geteuid() != 0:
        return "only root can become another user"
    return _tried(mode)


def choose(mode: str | None = None) -> str:
    """The best mode that works here, or `mode`. Raises CourseError if that does not work, or is none."""
    if mode is None:
        return _best()
    if mode not in MODES:
        raise CourseError(f"there is no boundary {mode}: choose {', '.join(MODES)}")
    if why := problem(mode):
        raise CourseError(f"the boundary {mode} does not work here: {why}")
    return mode


def _best() -> str:
    """Root is never given mode `limits` unasked: code of a submission would be root as well."""
    offered = [name for name in MODES if name != "limits" or os.geteuid() != 0]
    for mode in offered:
        if problem(mode) is None:
            return mode
    reasons = "; ".join(f"{mode}: {problem(mode)}" for mode in offered)
    raise CourseError(f"no process boundary works here ({reasons})")


def _tried(mode: str) -> str | None:
    from course.boundary.sandboxed import Sandboxed
    from course.boundary.settings import Boundary
    from course.boundary.trial import Trial
    from course.failure import Raised, Stopped

    with tempfile.TemporaryDirectory(prefix="tiny-llm-") as tree:
        os.chmod(tree, 0o755)
        observer = Sandboxed(Path(__file__).with_name("trial.py"), "tiny_llm", (), Boundary(tree, mode))
        try:
            found = observer.observe(Trial, str(Path(__file__).parent), {})
        except (Raised, Stopped) as error:
            return str(error).strip().splitlines()[-1]  # of a traceback the last line says what is wrong
        finally:
            observer.close()
    if not found["started"]:
        return f"code inside cannot start {sys.executable}: put Python where everybody may read it"
    if mode != "limits" and (found["writes"] or found["user"] == 0):
        return "code inside could write to the course's own files"
    return None
