"""What a process gives up before it runs learner code: rights, descriptors, environment, and room to grow.

Called in a freshly forked process, which afterwards can undo nothing of it."""

import os
import resource
import signal
from contextlib import suppress
from pathlib import Path

from course.boundary import kernel
from course.boundary.order import Order

_MB = 1 << 20
_MOST_OPEN = 1 << 20


def keep_only(descriptors: dict[int, int]) -> None:
    """Close all descriptors but those given, which get new numbers: {old: new}, new ones below 10."""
    moved = {os.dup2(old, 100 + new): new for old, new in descriptors.items()}
    for high, new in moved.items():
        os.dup2(high, new)
    most = os.sysconf("SC_OPEN_MAX")
    os.closerange(max(descriptors.values()) + 1, most if 0 < most < _MOST_OPEN else _MOST_OPEN)


def environment(order: Order) -> dict[str, str]:
    """The variables of a process that runs learner code."""
    own = {
        "HOME": f"{order.scratch}/home",
        "TMPDIR": f"{order.scratch}/tmp",
        "XDG_CACHE_HOME": order.cache,
        "PYTHONPATH": os.pathsep.join([order.tree, order.course]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | own


def make_folders(order: Order) -> None:
    """The folders that `environment` promises."""
    for name in ("home", "tmp", "shm"):
        os.makedirs(f"{order.scratch}/{name}", mode=0o700, exist_ok=True)


def confine(order: Order) -> None:
    """Become the user that runs learner code, within the limits."""
    os.umask(0o077)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # who goes first where memory runs out all the same
    _limit(order)
    if order.uid is not None:
        os.setgroups([])
        os.setresgid(order.uid, order.uid, order.uid)
        os.setresuid(order.uid, order.uid, order.uid)
        kernel.forget_keys()  # that an earlier case of this user left
    if order.mode == "namespaces":
        kernel.drop_capabilities()
    kernel.forgo_privileges()
    kernel.set_dumpable(True)  # so that it may look into itself: some cases measure memory
    kernel.die_with_parent(signal.SIGKILL)
    make_folders(order)
    os.chdir(f"{order.scratch}/home")
    variables = environment(order)
    os.environ.clear()
    os.environ.update(variables)


def _limit(order: Order) -> None:
    """Limits of the system. That of processes counts a whole user, so it needs one of its own, or a namespace."""
    limits = order.limits
    wanted = {
        "RLIMIT_CORE": 0,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_CPU": limits.cpu_seconds,
        "RLIMIT_FSIZE": limits.file_mb * _MB,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_DATA": (limits.memory_mb + limits.reserved_mb) * _MB,
    }
    if order.mode != "limits":
        wanted["RLIMIT_NPROC"] = limits.processes
    for name, value in wanted.items():
        number = getattr(resource, name, None)
        if number is None:  # macOS
            continue
        hard = resource.getrlimit(number)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        with suppress(OSError, ValueError):  # macOS refuses some values
            resource.setrlimit(number, (value, value))
