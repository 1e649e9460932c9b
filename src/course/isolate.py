"""Runs `observe` in a process of its own, so that a hang, a crash or a patched comparison cannot change a verdict.

One child serves one test file. A case that follows a failure gets a new one, and a child is killed with all that it
started when anything at all goes wrong here: a late answer must never be taken for the next one."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from course.case import Case
from course.failure import Failure, ending
from course.guard import ForbiddenNames
from course.messages import answer, request
from course.pipe import Closed, receive, send

_START = 60.0
_GRACE = 1.0


class Isolated:
    """An observer: `observe(case, inputs, forbidden)` gives copies of what the code under test returned."""

    def __init__(self, tests: Path, package: str, forbiddable: Sequence[str]) -> None:
        self._arguments = (str(tests), package, ",".join(forbiddable))
        self._child: _Child | None = None
        self._spoilt = False

    def begin(self) -> None:
        """Replace a child that has seen a failure: what that left behind must not touch the next case."""
        if self._spoilt:
            self.close()

    def observe(self, case: Case, inputs: object, forbidden: ForbiddenNames) -> object:
        """Raises `Raised` or `Stopped` for whatever the code under test does instead of returning plain values."""
        number, data = request(case, inputs, forbidden)
        try:
            self._child = self._child or _Child(*self._arguments)
            said = self._ask(number, data, case.timeout)
        except BaseException:
            self.close()
            raise
        if not isinstance(said, Failure):
            return said[0]
        if said.kind == "raised":
            self._spoilt = True  # a property goes on with other examples, which may be hundreds
        elif said.kind != "todo":
            self.close()
        raise said.exception()

    def close(self) -> None:
        """Kill the child, if there is one."""
        child, self._child, self._spoilt = self._child, None, False
        if child:
            child.kill()

    def _ask(self, number: int, data: bytes, timeout: float) -> tuple[object] | Failure:
        """The values in a tuple, or what went wrong."""
        try:
            return answer(self._child.call(data, timeout + _GRACE), number)
        except TimeoutError:
            return Failure("timeout", f"no result within {timeout:g} s, and the process did not react: it was killed")
        except Closed:
            return Failure("died", f"your code ended its process: {self._child.end()}")
        except ValueError as error:
            return Failure("died", f"the answer of the process cannot be read: {error}")


class _Child:
    """A started process, its two pipes, and a file for what it prints."""

    def __init__(self, *arguments: str) -> None:
        self.printed = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        child_read, self.write = os.pipe()
        self.read, child_write = os.pipe()
        os.set_blocking(self.write, False)
        command = [sys.executable, "-P", "-u", "-m", "course.child", *arguments, str(child_read), str(child_write)]
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self.printed,
                stderr=self.printed,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                pass_fds=(child_read, child_write),
                start_new_session=True,
            )
        finally:
            os.close(child_read)
            os.close(child_write)
        self.ready = False

    def call(self, request: bytes, timeout: float) -> bytes:
        """The answer to a request; starting up has a time limit of its own."""
        try:
            if not self.ready:
                receive(self.read, time.monotonic() + _START)
                self.ready = True
            deadline = time.monotonic() + timeout
            send(self.write, request, deadline)
            return receive(self.read, deadline)
        finally:
            self._show_printed()

    def end(self) -> str:
        """How the process ended, in words; waits a moment for one that only closed its pipes."""
        try:
            return ending(self.process.wait(_GRACE))
        except subprocess.TimeoutExpired:
            return ending(None)

    def kill(self) -> None:
        """End the process and everything in its group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for fd in (self.read, self.write):
            os.close(fd)
        self.printed.close()

    def _show_printed(self) -> None:
        """Pass on what was printed since the last time: pytest shows it with a failure."""
        text = os.pread(self.printed.fileno(), 1 << 20, 0)
        os.ftruncate(self.printed.fileno(), 0)
        os.lseek(self.printed.fileno(), 0, os.SEEK_SET)  # the child writes at the same offset
        sys.stdout.write(text.decode(errors="replace"))
