"""What the zygote is told at its start, and the signs that it and the grader exchange.

Control goes over a socket: the grader sends CASE with three descriptors (requests, answers, printed) or END; the zygote
sends replies of one letter and a number."""

import struct
from typing import NamedTuple

import msgspec

from course.boundary.settings import Limits

CASE, END = b"c", b"e"
READY, DIED, ENDED = b"r", b"d", b"e"
_REPLY = struct.Struct("<ci")
REPLY_SIZE = _REPLY.size


class Order(msgspec.Struct, frozen=True):
    """Paths are those inside the boundary. uid: of the processes that run learner code, None for the grader's own.

    visible, hidden: what a new root shows and covers (mode namespaces); sources: {place inside: path outside} of what
    appears under another name. cache_home: where the grader keeps its own files.
    """

    mode: str
    tests: str
    package: str
    forbiddable: tuple[str, ...]
    limits: Limits
    tree: str
    scratch: str
    cache: str
    uid: int | None
    course: str
    cache_home: str
    visible: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    sources: dict[str, str] = {}


class Reply(NamedTuple):
    """READY: number is 1 if it forks for each case, 0 if it serves one case itself. DIED: the status of `os.wait`.
    ENDED: how many processes besides the case's own had to be ended."""

    sign: bytes
    number: int

    def pack(self) -> bytes:
        return _REPLY.pack(self.sign, self.number)

    @classmethod
    def unpack(cls, data: bytes) -> "Reply":
        return cls(*_REPLY.unpack(data))
