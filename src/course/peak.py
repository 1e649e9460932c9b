"""How much memory a piece of work takes at most, whoever allocates it: MLX, C++ or anybody else in this process."""

import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_PROCESS = Path("/proc/self")


def resident_growth(work: Callable[[], object]) -> int:
    """Bytes by which this process's memory grew at most during `work`, compared with before.

    Where the system does not let a process forget its earlier peak, growth below that peak is not seen.
    """
    before = _forget_peak()
    work()
    return max(_peak() - before, 0)


def _forget_peak() -> int:
    with suppress(OSError):
        (_PROCESS / "clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    status = _PROCESS / "status"
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
