"""The file tree that learner code sees in mode `namespaces`: what it needs, read-only, and nothing else.

A new root is put together from the old one, then the old one is taken away. Needs the right to mount: root, or a user
namespace of one's own."""

import fcntl
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

from course.boundary import kernel
from course.boundary.order import Order

SCRATCH, CACHE, TREE = "/scratch", "/cache", "/submission"
_LINKS = {"/dev/fd": "/proc/self/fd", "/dev/shm": f"{SCRATCH}/shm"} | {
    f"/dev/{name}": f"/proc/self/fd/{number}" for number, name in enumerate(("stdin", "stdout", "stderr"))
}
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_FILES = 50_000
"""of a scratch folder: each takes memory, also when it is empty"""
_IFF_UP, _GET_FLAGS, _SET_FLAGS = 1, 0x8913, 0x8914


def enter(order: Order) -> None:
    """Make the new root this process's own. Raises OSError where that is not allowed."""
    kernel.mount("none", "/tmp", "tmpfs", kernel.NOSUID | kernel.NODEV)
    os.mkdir("/tmp/new")
    os.mkdir("/tmp/old")
    kernel.mount("none", "/tmp/new", "tmpfs", kernel.NOSUID, "mode=755,size=4m")
    kernel.pivot_root("/tmp", "/tmp/old")
    os.chdir("/")
    _show_all(order)
    for path in order.hidden:
        if os.path.isdir(f"/new{path}"):
            kernel.mount("none", f"/new{path}", "tmpfs", kernel.NOSUID, "mode=755,size=4k")
    for place in (order.scratch, order.cache, "/proc"):
        os.mkdir(f"/new{place}")
    _device_links()
    if not os.path.lexists("/new/tmp"):
        os.symlink(f"{SCRATCH}/tmp", "/new/tmp")
    kernel.restrict_mounts("/new", kernel.RDONLY | kernel.NOSUID)
    kernel.mount("proc", "/new/proc", "proc", kernel.NOSUID | kernel.NODEV)
    with suppress(OSError):  # pages of shared memory of System V, which no process need have mapped
        Path("/new/proc/sys/kernel/shmall").write_text(
            str((order.limits.scratch_mb << 20) // os.sysconf("SC_PAGE_SIZE"))
        )
    os.chdir("/new")
    kernel.pivot_root(".", ".")  # the old root now lies upon the new one
    kernel.unmount(".")
    os.chdir("/")
    _mount_memory(order.cache, order)
    fresh_scratch(order, first=True)
    _loopback_up()


def fresh_scratch(order: Order, first: bool = False) -> None:
    """Throw away all that was written, and begin with an empty folder."""
    if not first:
        kernel.unmount(order.scratch)
    _mount_memory(order.scratch, order)


def _mount_memory(place: str, order: Order) -> None:
    owner = os.getuid() if order.uid is None else order.uid
    group = os.getgid() if order.uid is None else order.uid
    options = f"mode=700,uid={owner},gid={group},size={order.limits.scratch_mb}m,nr_inodes={_FILES}"
    kernel.mount("none", place, "tmpfs", kernel.NOSUID | kernel.NODEV, options)


def _limit_shared_memory(order: Order) -> None:
    """That of System V, which needs no process to keep it. Some kernels let only root do this."""
    with suppress(OSError):
        pages = (order.limits.scratch_mb << 20) // os.sysconf("SC_PAGE_SIZE")
        Path("/new/proc/sys/kernel/shmall").write_text(str(pages))


def _show_all(order: Order) -> None:
    """Put all that is to be seen in its place, folders before what lies in them, and the symbolic links to them."""
    real = {path: _real(order.sources.get(path, path)) for path in (*order.visible, *_DEVICES)}
    links = {path: place for path, place in real.items() if place not in (None, path) and path not in order.sources}
    shown = {place: place for place in real.values() if place} | {path: real[path] for path in order.sources}
    for path in sorted(set(shown) - {real[path] for path in order.sources}):
        _show(path, shown[path])
    for path, place in links.items():
        if not os.path.lexists(f"/new{path}"):
            os.makedirs(os.path.dirname(f"/new{path}"), exist_ok=True)
            os.symlink(place, f"/new{path}")


def _show(path: str, source: str) -> None:
    """Put `source` of the old root at `path` of the new one, unless it lies in something that is there already."""
    target = Path(f"/new{path}")
    if os.path.lexists(target):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.path.isdir(f"/old{source}"):
        target.mkdir()
    else:
        target.touch()
    kernel.mount(f"/old{source}", str(target), None, kernel.BIND | kernel.RECURSIVE)


def _real(path: str) -> str | None:
    """`path` of the old root without symbolic links; None if nothing is there."""
    done, rest = "", [part for part in path.split("/") if part]
    for _ in range(1000):
        if not rest:
            return done or "/"
        part = rest.pop(0)
        if part == "..":
            done = os.path.dirname(done)
        elif os.path.islink(f"/old{done}/{part}"):
            link = os.readlink(f"/old{done}/{part}")
            done = "" if link.startswith("/") else done
            rest = [p for p in link.split("/") if p and p != "."] + rest
        elif os.path.lexists(f"/old{done}/{part}"):
            done = f"{done}/{part}"
        else:
            return None
    return None


def _device_links() -> None:
    """What stands in /dev besides devices."""
    for link, target in _LINKS.items():
        os.symlink(target, f"/new{link}")


def _loopback_up() -> None:
    """Let processes inside talk to each other on 127.0.0.1: graded cases do."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sH22x", b"lo", 0)
        flags = struct.unpack("16sH22x", fcntl.ioctl(sock, _GET_FLAGS, request))[1]
        fcntl.ioctl(sock, _SET_FLAGS, struct.pack("16sH22x", b"lo", flags | _IFF_UP))
