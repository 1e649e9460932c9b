"""Looks from outside at what a case uses: memory, processes and files. Limits of the system hold each process; this
holds them together, and also holds root."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from course.boundary.settings import Limits

_MB = 1 << 20
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess)


class Watch:
    """The processes below the process `pid`, which itself is the grader's, and the folder they write to, if any."""

    def __init__(self, pid: int, limits: Limits, scratch: Path | None) -> None:
        self._limits, self._scratch = limits, scratch
        self._started = psutil.Process(pid)
        self._own = {pid} | {child.pid for child in self._started.children()}

    def excess(self) -> str | None:
        """Which limit is passed now, in words for the learner."""
        processes = self._processes()
        limits = self._limits
        if len(processes) > limits.processes:
            return f"your code started more than {limits.processes} processes"
        if _resident(processes) > limits.memory_mb * _MB and _share(processes) > limits.memory_mb * _MB:
            return f"your code used more than {limits.memory_mb} MB of memory"
        if self._scratch and _size(self._scratch, limits.scratch_mb * _MB) > limits.scratch_mb * _MB:
            return f"your code wrote more than {limits.scratch_mb} MB to files"
        return None

    def _processes(self) -> list[psutil.Process]:
        with suppress(*_GONE):
            return [child for child in self._started.children(recursive=True) if child.pid not in self._own]
        return []


def _resident(processes: list[psutil.Process]) -> int:
    """Memory of all, where what two share counts twice."""
    total = 0
    for process in processes:
        with suppress(*_GONE):
            total += process.memory_info().rss
    return total


def _share(processes: list[psutil.Process]) -> int:
    """Memory of all, where what two share counts once. Slow."""
    total = 0
    for process in processes:
        with suppress(*_GONE):
            memory = process.memory_full_info()
            total += getattr(memory, "pss", memory.uss)
    return total


def _size(folder: Path, enough: int) -> int:
    """Bytes on the disk below `folder`; stops counting at `enough`."""
    total = 0
    for size in _sizes(str(folder)):
        total += size
        if total > enough:
            break
    return total


def _sizes(folder: str) -> Iterator[int]:
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                yield os.lstat(os.path.join(path, name)).st_blocks * 512
