"""Looks from outside at what a case uses: memory, processes and files. Limits of the system hold each process; this
holds them together, and also holds root."""

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

import psutil

from course.boundary.settings import Limits
from course.boundary.uids import files_of

_MB = 1 << 20
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess)


class Watch:
    """The processes below the process `pid`, which itself is the grader's; the folder they write to, if it is on the
    disk; and the user that is theirs alone, if any."""

    def __init__(self, pid: int, limits: Limits, scratch: Path | None, uid: int | None) -> None:
        self._limits, self._scratch, self._uid = limits, scratch, uid
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
        if self._written(limits.scratch_mb * _MB) > limits.scratch_mb * _MB:
            return f"your code wrote more than {limits.scratch_mb} MB to files"
        return None

    def _written(self, enough: int) -> int:
        """Bytes on the disk; stops counting at `enough`. Memory that looks like a disk has a size of its own."""
        if self._scratch is None:
            return 0
        elsewhere = files_of(self._uid) if self._uid is not None else []
        total = 0
        for size in chain.from_iterable(map(_sizes, [self._scratch, *elsewhere])):
            total += size
            if total > enough:
                break
        return total

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


def _sizes(place: Path) -> Iterator[int]:
    with suppress(OSError):
        yield os.lstat(place).st_blocks * 512
    for path, folders, names in os.walk(place):
        for name in (*folders, *names):
            with suppress(OSError):
                yield os.lstat(os.path.join(path, name)).st_blocks * 512
