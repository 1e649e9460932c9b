"""Looks from outside at what a case uses: memory, processes and files. Limits of the system hold each process; this
holds them together, and also holds root."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from course.boundary.disk import TooDeep, room, used
from course.boundary.kernel import shared_memory
from course.boundary.settings import Limits
from course.boundary.uids import files_of

_MB = 1 << 20
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess)


class Watch:
    """The processes below the process `pid`, which itself is the grader's; the folders on the disk that they write to;
    and the user that is theirs alone, if any."""

    def __init__(self, pid: int, limits: Limits, places: Sequence[Path], uid: int | None) -> None:
        self._limits, self._places, self._uid = limits, places, uid
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
        try:
            if self._written(processes, limits.scratch_mb * _MB) > limits.scratch_mb * _MB:
                return f"your code wrote more than {limits.scratch_mb} MB to files"
        except TooDeep:
            return "your code nested folders too deeply"
        return None

    def _written(self, processes: list[psutil.Process], enough: int) -> int:
        """Bytes on the disk; stops counting at `enough`. Memory that looks like a disk has a size of its own, but files
        that have no name count everywhere: they may lie in memory, too. Raises TooDeep."""
        elsewhere = files_of(self._uid) if self._uid is not None and self._places else []
        total = used([*self._places, *elsewhere], enough)
        if total <= enough:
            total += _nameless(processes) + (shared_memory(self._uid) if self._uid is not None else 0)
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


def _nameless(processes: list[psutil.Process]) -> int:
    """Bytes of files that were removed, or never had a name, but are open. Linux only."""
    found: dict[tuple[int, int], int] = {}
    for process in processes:
        with suppress(OSError):
            for entry in os.scandir(f"/proc/{process.pid}/fd"):
                with suppress(OSError):
                    if os.readlink(entry.path).endswith(" (deleted)"):
                        status = os.stat(entry.path)
                        found[status.st_dev, status.st_ino] = room(status)
    return sum(found.values())
