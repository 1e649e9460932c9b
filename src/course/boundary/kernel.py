"""The few system calls of Linux that Python 3.11 has no function for. Nothing here is a policy."""

import ctypes
import os
import sys

RDONLY, NOSUID, NODEV, BIND, RECURSIVE = 1, 2, 4, 1 << 12, 1 << 14  # of mount(2); the first three also of an attribute
_DETACH = 2
_SETATTR, _PIVOT_ROOT = 442, {"x86_64": 155, "aarch64": 41}
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_PDEATHSIG, _DUMPABLE, _NO_NEW_PRIVS, _SUBREAPER, _AMBIENT, _BOUND_DROP = 1, 4, 38, 36, 47, 24
_AMBIENT_CLEAR = 4
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_JOIN_SESSION_KEYRING, _CLEAR_KEYRING, _USER_KEYRING = 1, 7, -4
_CAPABILITY_VERSION = 0x20080522
_LINUX = sys.platform == "linux"
_libc = ctypes.CDLL(None, use_errno=True)


class _Attribute(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


def mount(source: str, target: str, kind: str | None, flags: int = 0, options: str = "") -> None:
    """mount(2). Raises OSError."""
    encoded = kind.encode() if kind else None
    _check(_libc.mount(source.encode(), target.encode(), encoded, ctypes.c_ulong(flags), options.encode()), target)


def unmount(target: str) -> None:
    """Take a mount and all below it away, also while it is in use. Raises OSError."""
    _check(_libc.umount2(target.encode(), _DETACH), target)


def restrict_mounts(target: str, attributes: int) -> None:
    """Set attributes of a mount and of all below it. Raises OSError, also on Linux before 5.12."""
    attribute = _Attribute(attributes, 0, 0, 0)
    size = ctypes.c_size_t(ctypes.sizeof(attribute))
    status = _libc.syscall(_SETATTR, _AT_FDCWD, target.encode(), _AT_RECURSIVE, ctypes.byref(attribute), size)
    _check(status, target)


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root, and put the old one at `old`. Raises OSError."""
    _check(_libc.syscall(_PIVOT_ROOT[os.uname().machine], new.encode(), old.encode()), new)


def set_dumpable(on: bool) -> None:
    """Whether processes of this user may look into this one. Only Linux has it."""
    _control(_DUMPABLE, int(on))


def die_with_parent(signal: int) -> None:
    """Get `signal` when the parent ends. Only Linux has it."""
    _control(_PDEATHSIG, signal)


def adopt_orphans(adopt: bool = True) -> None:
    """Become the parent of processes below this one whose own parent has ended, or no more. Only Linux has it."""
    _control(_SUBREAPER, int(adopt))


def forgo_privileges() -> None:
    """No program started from here on gets more rights than this process has. Only Linux has it."""
    _control(_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Give up all of root's special rights, here and in programs started from here. Raises OSError."""
    _control(_AMBIENT, _AMBIENT_CLEAR)
    capability = 0
    while _libc.prctl(_BOUND_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    none = (ctypes.c_uint32 * 6)()
    _check(_libc.capset(ctypes.byref(_Header(_CAPABILITY_VERSION, 0)), none), "capset")


def forget_keys() -> None:
    """Begin with no key of the kernel's: neither of the session nor of the user. Does nothing where that is barred."""
    if number := _LINUX and _KEYCTL.get(os.uname().machine):
        _libc.syscall(number, _JOIN_SESSION_KEYRING, None)
        _libc.syscall(number, _CLEAR_KEYRING, _USER_KEYRING)


def remove_ipc(uid: int | None = None) -> None:
    """Remove the shared memory, semaphores and messages of System V of a user, or all. Needs the right to."""
    for kind, remove in _IPC.items():
        for key in _ipc(kind):
            if uid in (None, int(key["uid"]), int(key["cuid"])):
                remove(int(key[f"{kind}id"]))


def shared_memory(uid: int) -> int:
    """Bytes that a user has in shared memory of System V."""
    return sum(int(key["rss"]) for key in _ipc("shm") if uid in (int(key["uid"]), int(key["cuid"])))


def _ipc(kind: str) -> list[dict[str, str]]:
    try:
        with open(f"/proc/sysvipc/{kind}") as file:
            names = file.readline().split()
            return [dict(zip(names, line.split(), strict=False)) for line in file]
    except OSError:  # no Linux, or one without it
        return []


_IPC = {
    "shm": lambda number: _libc.shmctl(number, 0, None),
    "sem": lambda number: _libc.semctl(number, 0, 0),
    "msg": lambda number: _libc.msgctl(number, 0, None),
}


def _control(option: int, value: int) -> None:
    if _LINUX:
        _check(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")


def _check(status: int, what: str) -> None:
    if status:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
