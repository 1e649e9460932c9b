"""Single keys from the terminal, which is put back as it was in every case."""

import contextlib
import os
import sys
import termios
import tty


class Keyboard:
    """Gives keys as they are pressed while it is open; none where nobody sits at a terminal."""

    def __init__(self) -> None:
        self._fd: int | None = None
        self._before: list | None = None
        self._ours = False
        with contextlib.suppress(OSError, ValueError, AttributeError):
            if os.isatty(sys.stdin.fileno()) and os.isatty(sys.stdout.fileno()):
                self._fd = sys.stdin.fileno()

    def __enter__(self) -> "Keyboard":
        if self._fd is not None:
            with contextlib.suppress(termios.error):
                self._before = termios.tcgetattr(self._fd)
            self.take()
        return self

    def __exit__(self, *details: object) -> None:
        self.give_back()

    @property
    def there(self) -> bool:
        """Whether there are keys to be had."""
        return self._before is not None

    def fileno(self) -> int:
        return -1 if self._fd is None else self._fd

    def take(self) -> None:
        """Have every key at once and unseen. Ctrl-C stays a signal."""
        self._ours = self._before is not None and self._in_front()
        if self._ours:
            with contextlib.suppress(termios.error):
                tty.setcbreak(self._fd, termios.TCSANOW)

    def check(self) -> None:
        """Take the terminal again if we were in the background since; a shell does not always tell."""
        if self._before is not None and self._in_front() != self._ours:
            self.take()

    def give_back(self) -> None:
        """Put the terminal back, for other programs or for good."""
        if self._before is not None and self._in_front():
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSANOW, self._before)

    def read(self) -> str | None:
        """The keys pressed; None when the terminal is gone. Arrows and the like are left out."""
        try:
            if os.tcgetpgrp(self._fd) != os.getpgrp():
                return ""  # they are for another program
            data = os.read(self._fd, 64)
        except BlockingIOError:
            return ""
        except OSError:
            return None
        if not data:
            return None
        return "" if data.startswith(b"\x1b") else data.decode(errors="ignore")

    def _in_front(self) -> bool:
        """Writing to the terminal's settings from the background would stop us."""
        with contextlib.suppress(OSError):
            return os.tcgetpgrp(self._fd) == os.getpgrp()
        return False
