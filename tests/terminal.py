"""A program at a pseudo-terminal, for tests of what a person at a keyboard meets."""

import contextlib
import os
import pty
import select
import signal
import time


class Terminal:
    """A program at a pseudo-terminal of its own, where the byte \\x03 is Ctrl-C."""

    def __init__(self, arguments: list[str], settings: dict[str, str]):
        self.output = ""
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.execve(arguments[0], arguments, settings | {"TERM": "dumb"})

    def type(self, text: str) -> None:
        time.sleep(0.3)  # a program prints its prompt a moment before it takes over the terminal
        os.write(self.file, text.encode())

    def wait_for(self, text: str, seconds: float = 30.0, count: int = 1) -> float:
        """Read until `text` has come `count` times. Returns how long that took."""
        start = time.monotonic()
        while self.output.count(text) < count:
            left = start + seconds - time.monotonic()
            assert left > 0, f"no {text!r} within {seconds} s in {self.output!r}"
            if select.select([self.file], [], [], left)[0]:
                self.output += os.read(self.file, 4096).decode(errors="replace")
        return time.monotonic() - start

    def exit_status(self, seconds: float = 10.0) -> int:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if select.select([self.file], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):  # the terminal is gone with the program
                    self.output += os.read(self.file, 4096).decode(errors="replace")
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(f"still running after {seconds} s: {self.output!r}")

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.file)
