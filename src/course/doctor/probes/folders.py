"""The two folders that the course writes to: its own `.course`, and the user's cache."""

import tempfile
from pathlib import Path

from course.doctor.finding import COMPILED, Finding
from course.paths import ROOT, cache_folder


def probe(full: bool) -> Finding:
    """Without `.course` nothing is built and nothing remembered; without a cache the fast products are missing."""
    own = ROOT / ".course"
    if problem := _problem(own):
        return Finding.fail(f"{own} cannot be written ({problem})", f"sudo chown -R $USER {ROOT}", stops=COMPILED)
    try:
        cache = cache_folder()
    except RuntimeError:
        return Finding.warn(
            "no home folder: nothing is cached", "export HOME=/tmp/home XDG_CACHE_HOME=/tmp/home/.cache"
        )
    if problem := _problem(cache):
        return Finding.warn(f"the cache {cache} cannot be written ({problem})", "export XDG_CACHE_HOME=/tmp/cache")
    return Finding.ok(f"{own}, {cache}")


def _problem(folder: Path) -> str:
    """Why nothing can be written there; "" if it can. Leaves nothing behind but the folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""
