"""How much memory the machine has, and the number format that follows from it."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from course.checkpoint_json import Packing
from course.errors import CourseError
from course.folder import Contents

BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
FLOAT32_SHARE = 0.6  # of the machine's memory: what float32 weights may take before bfloat16 is the default
MIB, GIB = 2**20, 2**30


@dataclass(frozen=True)
class Format:
    """How a program holds a model: activations and plain weights in `dtype`, or its matrices packed.

    A packed matrix has a scale and a bias of dtype `scales` for each group.
    """

    dtype: str
    packing: Packing | None = None
    scales: str = "bfloat16"

    @property
    def bytes_per_weight(self) -> float:
        """Of a matrix; norm weights, few, are never packed."""
        if self.packing is None:
            return BYTES[self.dtype]
        return self.packing.bits / 8 + 2 * BYTES[self.scales] / self.packing.group_size

    def __str__(self) -> str:
        return self.dtype if self.packing is None else f"{self.packing.bits} bits with {self.dtype} activations"


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


def default_dtype(
    found: Contents, *, packing: Packing | None = None, system: str = sys.platform, memory: int | None = None
) -> str:
    """As stored on a Mac. On Linux float32, which the BLAS route makes fast, where it fits, else bfloat16."""
    if system == "darwin":
        return found.dtype
    memory = total_memory() if memory is None else memory
    need = found.parameters * Format("float32", packing, found.dtype).bytes_per_weight
    return "float32" if need <= FLOAT32_SHARE * memory else "bfloat16"


def check_memory(folder: Path, found: Contents, form: Format, *, available: int | None = None) -> None:
    """Raise CourseError if the weights in this format would not fit in what is available now."""
    available = available_memory() if available is None else available
    need = found.parameters * form.bytes_per_weight
    if need <= available:
        return
    smaller = []
    if form.packing is None:
        smaller = [", or --ops flash (4-bit weights, by Week 2's kernels)"]
        if BYTES[form.dtype] > 2:
            smaller.insert(0, ", add --dtype bfloat16 (half the memory)")
    raise CourseError(
        f"{folder.name} needs {need / GIB:.1f} GiB in {form}, but only {available / GIB:.1f} GiB of memory are free: "
        f"close other programs, choose a smaller model{''.join(smaller)}"
    )


def _container_limit() -> int | None:
    """The memory limit of this control group (version 2), if there is one."""
    try:
        text = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
