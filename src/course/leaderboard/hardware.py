"""The class of a number: speeds compare on equal machines only, counters of the emulator everywhere."""

import os
import platform
from pathlib import Path

from course.machine import facts

PORTABLE = "emulator counters, the same on every machine"
_SETS = ("avx512_bf16", "avx512f", "avx2", "sve", "asimd")  # the widest first


def machine() -> str:
    """CPU, cores that may be used, and the widest vector instructions."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return f"{facts()['cpu']}, {cores} cores, {_instructions()}"


def _instructions() -> str:
    try:
        words = set(Path("/proc/cpuinfo").read_text(errors="replace").split())
    except OSError:
        words = set()
    widest = next((name for name in _SETS if name in words), "")
    return f"{platform.machine()} {widest}".strip()
