"""How the emulator runs the kernels called now, and what became of them."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Buffer:
    """An argument of a launched kernel."""

    name: str
    nbytes: int
    itemsize: int = 1


@dataclass(frozen=True)
class Launch:
    """One call of a kernel: where its record will be found, and what its findings are told with."""

    tag: int
    kernel: str
    library: Path
    source: str
    own: frozenset[str]
    buffers: tuple[Buffer, ...]

    @property
    def file(self) -> str:
        """The author's file, for what no single line is to blame for."""
        return next((name for name in sorted(self.own) if "." in name), self.kernel)


@dataclass
class Session:
    """The launches made while it is the current one, in the order of the calls."""

    checked: bool = True
    trace: int | None = None
    launches: list[Launch] = field(default_factory=list)


_tags = itertools.count(1)
_session: ContextVar[Session | None] = ContextVar("emulator_session", default=None)


def current() -> Session | None:
    """The session of a kernel called now; None: the fast build, and no records."""
    return _session.get()


def new_tag() -> int:
    """A number that no other launch of this process has."""
    return next(_tags)


@contextmanager
def recording(checked: bool = True, trace: int | None = None) -> Iterator[Session]:
    """Kernels called inside are recorded. `trace`: index of the threadgroup whose accesses are kept as well."""
    session = Session(checked, trace)
    token = _session.set(session)
    try:
        yield session
    finally:
        _session.reset(token)
