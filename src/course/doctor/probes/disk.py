"""How much room there is where the course writes: its checkout, the cache, and the place for temporary files."""

import os
import shutil
import tempfile
from pathlib import Path

from course.doctor.finding import COMPILED, Finding
from course.memory import GIB, MIB
from course.paths import ROOT, cache_folder

LEAST, ENOUGH = 300 * MIB, 2 * GIB
"""Bytes: for builds at all, and for builds, caches and books without a second look."""


def probe(full: bool) -> Finding:
    """The fullest of the places decides."""
    places = {str(ROOT): ROOT, **_cache(), "temporary files": Path(tempfile.gettempdir())}
    usage = {name: shutil.disk_usage(_existing(path)) for name, path in places.items()}
    free = {name: one.free for name, one in usage.items() if one.total}  # /proc and its like have no size
    name = min(free, key=free.__getitem__)
    found = f"{_size(free[name])} free for {name}"
    if free[name] < LEAST:
        return Finding.fail(f"{found}: builds need {_size(LEAST)}", f"du -sh {ROOT / '.course'} ~/.cache", COMPILED)
    if free[name] < ENOUGH:
        return Finding.warn(f"{found}: that is little", f"du -sh {ROOT / '.course'} ~/.cache")
    return Finding.ok(found)


def _cache() -> dict[str, Path]:
    try:
        return {"the cache": cache_folder()}
    except RuntimeError:  # no home
        return {}


def _existing(path: Path) -> Path:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path if os.access(path, os.R_OK) else path.parent


def _size(count: float) -> str:
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count / MIB:.0f} MiB"
