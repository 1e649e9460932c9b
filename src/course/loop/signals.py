"""Signals as numbers that one reads when it suits, so that nothing is cut off half-way."""

import contextlib
import os
import signal

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_HEARD = (*ENDS, signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT)


class Signals:
    """Keeps signals while it is open; `fileno` is readable when some have come."""

    def __enter__(self) -> "Signals":
        self._read, self._write = os.pipe()
        for fd in (self._read, self._write):
            os.set_blocking(fd, False)
        heard = [number for number in _HEARD if signal.getsignal(number) is not signal.SIG_IGN]  # `nohup` ignores one
        self._before = {number: signal.signal(number, lambda number, frame: None) for number in heard}
        self._waker = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        return self

    def __exit__(self, *details: object) -> None:
        signal.set_wakeup_fd(self._waker)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._read)
        os.close(self._write)

    def fileno(self) -> int:
        return self._read

    def stop(self) -> None:
        """Stop as Ctrl-Z would have us, until we are continued; nothing happens where nobody could continue us."""
        heard = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, heard)

    def take(self) -> list[int]:
        """The numbers of those that came."""
        with contextlib.suppress(BlockingIOError):
            return list(os.read(self._read, 64))
        return []
