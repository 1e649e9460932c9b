"""The grader's side of one case: requests out, answers in, all that is printed drained, and an eye on the limits.

Everything here may be at the mercy of code that hangs, lies or dies: waits have a deadline, and buffers a size."""

import os
import selectors
import socket
import struct
import sys
import time
from contextlib import suppress

from course.boundary.launch import NoStart, Zygote
from course.boundary.order import CASE, END, ENDED
from course.boundary.settings import Limits
from course.boundary.watch import Watch
from course.pipe import Closed

_CHUNK = 1 << 16
_LOOK = 0.05
"""s between two looks at the limits"""
_START = 30.0
_GRACE = 0.5
_END = 6.0
_LENGTH = struct.Struct("<Q")


class Excess(Exception):
    """A limit was passed; the text says which."""


class Died(Exception):
    """The process of the case has ended; `code` is its exit status, -number of a signal, or None if not known."""

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code


class Exchange:
    """One case. Raises `NoStart` if its process does not get as far as learner code."""

    def __init__(self, zygote: Zygote, watch: Watch, limits: Limits) -> None:
        self._zygote, self._watch, self._limits = zygote, watch, limits
        self._printed = _Printed(limits.printed_kb << 10)
        self._code: int | None = None
        self._dead = False
        requests, self._request = os.pipe()
        self._answer, answers = os.pipe()
        self._output, printed = os.pipe()
        theirs = (requests, answers, printed)
        try:
            socket.send_fds(zygote.control, [CASE], theirs)
        finally:
            for fd in theirs:
                os.close(fd)
        for fd in (self._request, self._answer, self._output):
            os.set_blocking(fd, False)
        self._begin()

    def _begin(self) -> None:
        """Wait until only learner code is left to run: what goes wrong before that is not the learner's fault."""
        try:
            self._call(memoryview(b""), time.monotonic() + _START)
        except (Died, Excess, Closed, TimeoutError, EOFError) as error:
            self._drain()
            said = self._printed.take().strip() or f"{type(error).__name__} {error}"
            with suppress(TimeoutError, EOFError):
                self.end()
            raise NoStart(said.splitlines()[-1]) from None

    def call(self, request: bytes, deadline: float) -> bytes:
        """The answer. Raises TimeoutError, `Died`, `Excess`, `Closed` for bytes that are no message."""
        try:
            if _Answer(self._answer, self._limits.message_mb << 20).read():
                raise Closed("it answers what nobody had asked for")
            return self._call(memoryview(_LENGTH.pack(len(request)) + request), deadline)
        finally:
            self._drain()
            sys.stdout.write(self._printed.take())

    def end(self) -> None:
        """Have the zygote kill what is left of the case, and wait until it has. Raises EOFError or TimeoutError."""
        try:
            if self._zygote.forks:
                self._zygote.control.sendall(END)
                deadline = time.monotonic() + _END
                while self._zygote.reply(deadline).sign != ENDED:
                    pass
        except OSError as error:
            raise EOFError(str(error)) from None
        finally:
            for fd in (self._request, self._answer, self._output):
                os.close(fd)

    def _call(self, rest: memoryview, deadline: float) -> bytes:
        if self._dead:
            raise Died(self._code)
        answer = _Answer(self._answer, self._limits.message_mb << 20)
        look = 0.0
        with selectors.DefaultSelector() as selector:
            control = [self._zygote.control.fileno()] if self._zygote.forks else []
            for fd in (self._answer, self._output, *control):
                selector.register(fd, selectors.EVENT_READ)
            selector.register(self._request, selectors.EVENT_WRITE)
            while True:
                now = time.monotonic()
                if now >= deadline:
                    raise TimeoutError
                if now >= look:
                    look = now + _LOOK
                    if excess := self._watch.excess():
                        raise Excess(excess)
                ready = {key.fd for key, _ in selector.select(min(deadline, look) - now)}
                if self._output in ready and not self._printed.read(self._output):
                    selector.unregister(self._output)
                if self._request in ready:
                    rest = self._write(rest)
                    if not rest:
                        selector.unregister(self._request)
                if self._answer in ready:
                    answer.read()
                    if answer.whole is not None:
                        return answer.whole
                    if answer.ended:
                        raise Died(self._last_code())
                if ready.intersection(control):
                    self._last_code()
                    answer.read()
                    if answer.whole is not None:
                        return answer.whole
                    raise Died(self._code)

    def _write(self, rest: memoryview) -> memoryview:
        try:
            return rest[os.write(self._request, rest[:_CHUNK]) :]
        except BlockingIOError:
            return rest
        except OSError:
            return memoryview(b"")  # it does not listen: that it died, or why, is told by other means

    def _last_code(self) -> int | None:
        """How the process of the case ended; waits a moment for one that only closed its pipes."""
        if not self._zygote.forks:  # it was the case's process itself
            self._code = self._zygote.exit_code()
        with suppress(TimeoutError):
            if self._zygote.forks:
                self._code = os.waitstatus_to_exitcode(self._zygote.reply(time.monotonic() + _GRACE).number)
        self._dead = self._code is not None
        return self._code

    def _drain(self) -> None:
        for _ in range(64):
            if not self._printed.read(self._output):
                return


class _Answer:
    """A message as it comes in."""

    def __init__(self, fd: int, most: int) -> None:
        self._fd, self._most = fd, most
        self._data = bytearray()
        self.whole: bytes | None = None
        self.ended = False

    def read(self) -> bool:
        """Take what is there; whether something was. Raises `Closed` for a message that is too long."""
        came = False
        while self.whole is None and (part := self._part()):
            came = True
            self._data += part
            if len(self._data) >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(self._data)
                if length > self._most:
                    raise Closed(f"a result of {length >> 20} MB is larger than {self._most >> 20} MB")
                if len(self._data) >= _LENGTH.size + length:
                    self.whole = bytes(self._data[_LENGTH.size : _LENGTH.size + length])
        return came

    def _part(self) -> bytes:
        wanted = _LENGTH.size
        if len(self._data) >= _LENGTH.size:
            wanted += _LENGTH.unpack_from(self._data)[0]
        try:
            part = os.read(self._fd, min(_CHUNK, wanted - len(self._data)))
        except BlockingIOError:
            return b""
        self.ended = not part
        return part


class _Printed:
    """The end of what was printed, in a buffer that does not grow."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._data = bytearray()
        self._left_out = 0

    def read(self, fd: int) -> bool:
        """Take what is there; whether there may be more."""
        try:
            part = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        self._data += part
        if (excess := len(self._data) - self._most) > 0:
            del self._data[:excess]
            self._left_out += excess
        return bool(part)

    def take(self) -> str:
        text = self._data.decode(errors="replace")
        if self._left_out:
            text = f"({self._left_out} bytes are left out here)\n{text}"
        self._data.clear()
        self._left_out = 0
        return text
