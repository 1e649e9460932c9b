"""The end of a case inside the boundary: all its processes are killed, and what it wrote is thrown away.

Runs in the zygote. The mode says who is killed: all processes of the namespace, of the user, or below this one."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from course.boundary import kernel
from course.boundary.disk import TooDeep, empty, used
from course.boundary.order import Order
from course.boundary.uids import clear_shared, kill_user

_PATIENCE = 5.0


def end_all(order: Order) -> int:
    """The number of processes that have ended. Raises TimeoutError for one that cannot be killed."""
    deadline = time.monotonic() + _PATIENCE
    ended = 0
    while True:
        _kill(order)
        ended += _reap()
        if not _children():
            break
        if time.monotonic() > deadline:
            raise TimeoutError("a process does not end")
        time.sleep(0.0005)
    if order.mode == "namespaces":
        from course.boundary.root import fresh_scratch

        kernel.remove_ipc()
        fresh_scratch(order)
    else:
        empty(Path(order.scratch))
        _bound_cache(order)
        if order.uid is not None:
            clear_shared(order.uid)
    return ended


def _bound_cache(order: Order) -> None:
    """Kernels that were compiled stay for the next case, but never so many that it could not write its own."""
    most = order.limits.scratch_mb << 19
    try:
        if used([Path(order.cache)], most) <= most:
            return
    except TooDeep:
        pass
    empty(Path(order.cache))


def _kill(order: Order) -> None:
    if order.mode == "namespaces" and os.getpid() == 1:
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # all of the namespace but this process
    elif order.uid is not None:
        kill_user(order.uid)
    else:
        for pid in _below(os.getpid()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _reap() -> int:
    count = 0
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            count += 1
    return count


def _children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _below(pid: int) -> list[int]:
    """All descendants of a process; orphans among them, since the zygote adopts these."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                stat = Path(entry.path, "stat").read_text(errors="replace")
                parent = int(stat.rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found, new = [], [pid]
    while new:
        new = [child for parent in new for child in children.get(parent, ())]
        found += new
    return found
