"""Users that nobody else has: each boundary that root starts gets one, and no two at a time get the same.

The users need no entry in the password file. Who has which is known by locks on files that only root can write."""

import fcntl
import os
import signal
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from course.boundary import kernel
from course.boundary.disk import remove
from course.errors import CourseError
from course.paths import ROOT

FIRST, COUNT = 59_000, 900
"""Numbers that Linux distributions leave free, and that also exist in a container with 65,536 users. As many below
them are used by processes that kill."""
_LOCKS = (Path("/run/tiny-llm"), ROOT / ".course" / "users")
_SHARED = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock", "/run/shm", "/var/lock", "/var/crash", "/dev/mqueue")
_PATIENCE = 5.0
_KILLS_WITHIN = 1.0


@contextmanager
def leased_uid() -> Iterator[int]:
    """A user of one's own for as long as the context is open. Raises CourseError where none is left."""
    folder = _folder()
    for uid in range(FIRST, FIRST + COUNT):
        lock = os.open(folder / str(uid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            continue
        try:
            yield uid
            return
        finally:
            os.close(lock)
    raise CourseError(f"all {COUNT} users for submissions are in use: grade fewer at a time")


def kill_user(uid: int) -> None:
    """Kill all processes of an unprivileged user. Only root may.

    The process that does it has the user's rights to signal, but another real and saved user: so nobody can stop it.
    """
    if uid <= 0:
        raise ValueError(f"user {uid} is not unprivileged")
    pid = os.fork()
    if pid == 0:
        try:
            os.setresuid(uid - COUNT, uid, uid - COUNT)
            os.kill(-1, signal.SIGKILL)  # all that this user may signal, but this process
        except OSError:
            pass
        finally:
            os._exit(0)
    deadline = time.monotonic() + _KILLS_WITHIN
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.0005)


def clear_user(uid: int) -> None:
    """Kill all processes of a user and remove what it left where everybody may write. Raises TimeoutError."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        kill_user(uid)
        if not _has_processes(uid):
            break
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes of user {uid} do not end")
        time.sleep(0.005)
    clear_shared(uid)


def clear_shared(uid: int) -> None:
    """Remove what a user without processes has left where everybody may leave something."""
    kernel.remove_ipc(uid)
    for path in files_of(uid):
        remove(path)


def files_of(uid: int) -> list[Path]:
    """Files and folders of a user in places where everybody may write, and in folders of others there that allow it."""
    found: list[Path] = []
    places = list(dict.fromkeys(map(os.path.realpath, (tempfile.gettempdir(), *_SHARED))))
    while places:
        with suppress(OSError):
            for entry in os.scandir(places.pop()):
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if status.st_uid == uid:
                        found.append(Path(entry.path))
                    elif stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_IWOTH:
                        places.append(entry.path)
    return found


def _has_processes(uid: int) -> bool:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                lines = Path(entry.path, "status").read_text(errors="replace").splitlines()
                told = dict(line.split(":", 1) for line in lines if ":" in line)
                if str(uid) in told["Uid"].split() and told["State"].split()[0] not in "ZX":
                    return True
    return False


def _folder() -> Path:
    for place in _LOCKS:
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(place, os.W_OK):
            return place
    raise CourseError(f"cannot write {_LOCKS[-1]}: make the folder writable")
