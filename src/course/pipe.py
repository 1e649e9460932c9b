"""Messages between the grader and a child, over two pipes: 8 bytes length (little-endian), then the bytes.

Both ends may be at the mercy of code that hangs or dies, so the grader's calls have a deadline."""

import os
import select
import struct
import time
from collections.abc import Iterator

_LARGEST = 1 << 30
_CHUNK = 1 << 16


class Closed(Exception):
    """The other end is gone, or sends what is no message."""


def send(fd: int, data: bytes, deadline: float | None = None) -> None:
    """Write one message; raises TimeoutError after `deadline` (of `time.monotonic`), `Closed` if nobody can read it.

    With a deadline the descriptor must not block.
    """
    rest = memoryview(struct.pack("<Q", len(data)) + data)
    while rest:
        if deadline is not None:
            _wait([], [fd], deadline)
        try:
            rest = rest[os.write(fd, rest[:_CHUNK]) :]
        except BlockingIOError:
            continue
        except OSError as error:
            raise Closed(str(error)) from None


def receive(fd: int, deadline: float | None = None) -> bytes:
    """Read one message; raises TimeoutError after `deadline`, `Closed` if the other end is gone."""
    (length,) = struct.unpack("<Q", b"".join(_read(fd, 8, deadline)))
    if length > _LARGEST:
        raise Closed(f"a message of {length} bytes is larger than {_LARGEST}")
    return b"".join(_read(fd, length, deadline))


def _read(fd: int, count: int, deadline: float | None) -> Iterator[bytes]:
    while count:
        if deadline is not None:
            _wait([fd], [], deadline)
        try:
            data = os.read(fd, min(count, _CHUNK))
        except OSError as error:
            raise Closed(str(error)) from None
        if not data:
            raise Closed("end of the pipe")
        count -= len(data)
        yield data


def _wait(readable: list[int], writable: list[int], deadline: float) -> None:
    if not any(select.select(readable, writable, [], max(0.0, deadline - time.monotonic()))):
        raise TimeoutError
