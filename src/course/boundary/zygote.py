"""`python -m course.boundary.zygote FD`: has everything loaded that a case needs, and forks for each of them.

It is started by `course.boundary.launch`, reads its `Order` from the socket FD, goes behind the boundary, and imports
what is not learner code. It never evaluates an MLX array: a fork after that hangs. Learner code runs in the forks only,
so nothing of one case reaches the next."""

import importlib
import os
import select
import signal
import socket
import sys
import traceback
import types
from pathlib import Path
from typing import NoReturn

import msgspec

from course.boundary import kernel
from course.boundary.order import CASE, DIED, END, ENDED, READY, Order, Reply
from course.pipe import receive


def main(fd: int) -> None:
    """Serve the grader until it closes its end."""
    control = socket.socket(fileno=fd)
    order = msgspec.json.decode(receive(fd), type=Order)
    _shut(order)
    module = _load(order)
    forks = _can_fork()
    control.sendall(Reply(READY, int(forks)).pack())
    if forks:
        _Zygote(control, order, module).serve()
    else:
        _serve_one(control, order, module)


def _shut(order: Order) -> None:
    """Go behind the boundary, as far as it goes for this process."""
    kernel.set_dumpable(False)
    if order.mode == "namespaces":
        importlib.import_module("course.boundary.root").enter(order)
    elif sys.platform == "linux":
        kernel.adopt_orphans()


def _load(order: Order) -> types.ModuleType:
    """The test file, and before it all that would else be loaded for each case."""
    os.environ["XDG_CACHE_HOME"] = order.cache_home
    importlib.import_module("course.route")  # before anything imports mlx.core
    child = importlib.import_module("course.child")
    return child.load(Path(order.tests))


def _can_fork() -> bool:
    """Whether this process has one thread. OpenBLAS ends its own before a fork, so one is tried first."""
    if sys.platform != "linux":
        return False
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return len(os.listdir("/proc/self/task")) == 1


def _take(control: socket.socket) -> tuple[bytes, list[int]]:
    """One command of the grader, with its descriptors; b"" when the grader has closed its end."""
    data, descriptors, _, _ = socket.recv_fds(control, 1, 3)
    return data, descriptors


def _serve_one(control: socket.socket, order: Order, module: types.ModuleType) -> None:
    """Be the process of the one case that comes."""
    data, descriptors = _take(control)
    if data == CASE:
        _run(order, module, descriptors)


def _run(order: Order, module: types.ModuleType, descriptors: list[int]) -> NoReturn:
    """Become a process that runs learner code: never returns to what the zygote does."""
    try:
        importlib.import_module("course.boundary.inside").run(order, module, descriptors)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


class _Zygote:
    """The loop: start a case, tell that it died, end it."""

    def __init__(self, control: socket.socket, order: Order, module: types.ModuleType) -> None:
        self.control, self.order, self.module = control, order, module
        self.case: int | None = None
        self.woken, wake = os.pipe()
        os.set_blocking(self.woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)

    def serve(self) -> None:
        while True:
            ready = select.select([self.control, self.woken], [], [])[0]
            if self.woken in ready:
                os.read(self.woken, 4096)
                self._reap()
            if self.control in ready and not self._obey():
                return

    def _obey(self) -> bool:
        data, descriptors = _take(self.control)
        if data == CASE:
            self._fork(descriptors)
        elif data == END:
            self._reply(ENDED, self._end())
        else:
            self._end()
        for fd in descriptors:
            os.close(fd)
        return bool(data)

    def _fork(self, descriptors: list[int]) -> None:
        self.case = os.fork()
        if self.case == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _run(self.order, self.module, descriptors)

    def _reap(self) -> None:
        """Take note of processes that have ended; orphans come here too."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.case:
                self.case = None
                self._reply(DIED, status)

    def _end(self) -> int:
        """End all that the case has started; the number of processes that were left besides its own."""
        ended = importlib.import_module("course.boundary.ending").end_all(self.order)
        own, self.case = self.case is not None, None
        return max(0, ended - own)

    def _reply(self, sign: bytes, number: int) -> None:
        self.control.sendall(Reply(sign, number).pack())


if __name__ == "__main__":
    main(int(sys.argv[1]))
