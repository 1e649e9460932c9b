"""Runs `observe` behind a process boundary: an observer that expects the worst of the code under test.

One zygote serves one test file, and forks a process for each case. Whatever goes wrong there is told as a `Failure`;
what goes wrong on the grader's own side has the kind "boundary"."""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from course.boundary.exchange import Died, Excess, Exchange
from course.boundary.launch import NoStart, Zygote
from course.boundary.settings import Boundary
from course.boundary.watch import Watch
from course.case import Case
from course.failure import Failure, ending
from course.guard import ForbiddenNames
from course.messages import answer, request
from course.pipe import Closed

_GRACE = 1.0


class Sandboxed:
    """An observer: `observe(case, inputs, forbidden)` gives copies of what the code under test returned."""

    def __init__(self, tests: Path, package: str, forbiddable: Sequence[str], boundary: Boundary) -> None:
        self._arguments = (boundary, tests, package, forbiddable)
        self._boundary = boundary
        self._zygote: Zygote | None = None
        self._exchange: Exchange | None = None

    def begin(self) -> None:
        """End the case before: each gets a process of its own."""
        self._end_case()

    def observe(self, case: Case, inputs: object, forbidden: ForbiddenNames) -> object:
        """Raises `Raised` or `Stopped` for whatever the code under test does instead of returning plain values."""
        number, data = request(case, inputs, forbidden)
        try:
            said = self._ask(number, data, case.timeout)
        except BaseException:
            self.close()
            raise
        if not isinstance(said, Failure):
            return said[0]
        if said.kind not in ("raised", "todo"):
            self._end_case()
        raise said.exception()

    def close(self) -> None:
        """End the case and the zygote."""
        zygote, exchange, self._zygote, self._exchange = self._zygote, self._exchange, None, None
        if exchange:
            with suppress(EOFError, TimeoutError):
                exchange.end()
        if zygote:
            zygote.end()

    def _end_case(self) -> None:
        exchange, self._exchange = self._exchange, None
        if not exchange:
            return
        try:
            exchange.end()
        except (EOFError, TimeoutError):
            self.close()  # killed with all that it holds
        if self._zygote and not self._zygote.forks:
            self.close()

    def _start(self) -> Exchange:
        """The case's process, and whatever is needed for it. Raises `NoStart`."""
        if not self._zygote:
            self._zygote = Zygote(*self._arguments)
            self._watch = Watch(self._zygote.pid, self._boundary.limits, self._zygote.places, self._zygote.uid)
        return Exchange(self._zygote, self._watch, self._boundary.limits)

    def _ask(self, number: int, data: bytes, timeout: float) -> tuple[object] | Failure:
        """The values in a tuple, or what went wrong."""
        try:
            self._exchange = self._exchange or self._start()
        except (NoStart, OSError) as error:
            return Failure("boundary", f"the grader cannot start what runs your code: {error}")
        try:
            return answer(self._exchange.call(data, time.monotonic() + timeout + _GRACE), number)
        except TimeoutError:
            return Failure("timeout", f"no result within {timeout:g} s, and the process did not react: it was killed")
        except Excess as error:
            return Failure("limit", f"{error}: it was stopped")
        except Died as error:
            return Failure("died", f"your code ended its process: {ending(error.code)}")
        except EOFError:
            return Failure("died", "your code ended the process that starts cases")
        except (Closed, ValueError) as error:
            return Failure("died", f"the answer of the process cannot be read: {error}")
