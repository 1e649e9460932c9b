"""How much memory the machine has, and the number format that follows from it."""

import os
import sys
from pathlib import Path

from course.errors import CourseError
from course.folder import Contents

BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
FLOAT32_SHARE = 0.6  # of the machine's memory: what float32 weights may take before bfloat16 is the default
GIB = 2**30


def total_memory() -> int:
    """Bytes of memory of this machine, or of the container it is."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(physical, _container_limit() or physical)


def available_memory() -> int:
    """Bytes a program can still take without swapping; on macOS, which frees caches on demand, all of the memory."""
    available = total_memory()
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        if "MemAvailable" in lines:
            available = min(available, int(lines["MemAvailable"].split()[0]) * 1024)
    return available


def default_dtype(found: Contents, *, system: str = sys.platform, memory: int | None = None) -> str:
    """As stored on a Mac. On Linux float32, which the BLAS route makes fast, where it fits, else bfloat16."""
    if system == "darwin":
        return found.dtype
    memory = total_memory() if memory is None else memory
    return "float32" if found.parameters * BYTES["float32"] <= FLOAT32_SHARE * memory else "bfloat16"


def check_memory(folder: Path, found: Contents, dtype: str, *, available: int | None = None) -> None:
    """Raise CourseError if the weights in `dtype` would not fit in what is available now."""
    available = available_memory() if available is None else available
    need = found.parameters * BYTES[dtype]
    if need <= available:
        return
    smaller = ", or add --dtype bfloat16 (half the memory)" if BYTES[dtype] > 2 else ""
    raise CourseError(
        f"{folder.name} needs {need / GIB:.1f} GiB in {dtype}, but only {available / GIB:.1f} GiB of memory are free: "
        f"close other programs, choose a smaller model{smaller}"
    )


def _container_limit() -> int | None:
    """The memory limit of this control group (version 2), if there is one."""
    try:
        text = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
