"""Processes that belong together without a namespace or a user of their own: by descent, and by a mark they inherit.

For mode `limits`. A process that has lost its parents and wiped its mark is not found."""

import os
import time
from contextlib import suppress

import psutil

MARK = "TINY_LLM_BOUNDARY"
"""The variable that holds the mark."""
_PATIENCE = 5.0
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess, OSError)


def kill_tree(pid: int, mark: str) -> None:
    """Kill what the process `pid` has started, what bears the mark, and then itself. Raises TimeoutError."""
    deadline = time.monotonic() + _PATIENCE
    while found := [process for process in _below(pid) + _marked(mark) if process.pid not in (pid, os.getpid())]:
        for process in found:
            with suppress(*_GONE):
                process.kill()
        if time.monotonic() > deadline:
            raise TimeoutError("processes of the code under test do not end")
        psutil.wait_procs(found, timeout=0.2)
    with suppress(*_GONE):
        psutil.Process(pid).kill()


def _below(pid: int) -> list[psutil.Process]:
    with suppress(*_GONE):
        return [child for child in psutil.Process(pid).children(recursive=True) if _lives(child)]
    return []


def _marked(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(*_GONE):
            if process.environ().get(MARK) == mark and _lives(process):
                found.append(process)
    return found


def _lives(process: psutil.Process) -> bool:
    with suppress(*_GONE):
        return process.status() != psutil.STATUS_ZOMBIE
    return False
