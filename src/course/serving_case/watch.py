"""Errors that other threads log instead of raising them: kept, and a stub among them told apart.

A server swallows what its code raises: it logs it and answers 500. "Not written yet" must not pass for that.
"""

import logging
from collections.abc import Callable

from course.stub import stub_of


class Watch(logging.Handler):
    """`with Watch(package) as watch: ...` raises in the end the first stub that was logged inside, if any.

    errors: what was logged with an exception, in words. on_stub: called at once, in the thread that logged it.
    """

    def __init__(self, package: str, on_stub: Callable[[], None] = lambda: None):
        super().__init__(logging.WARNING)
        self.errors: list[str] = []
        self.on_stub = on_stub
        self.stub: BaseException | None = None
        self._loggers = [logging.getLogger(name) for name in (package, "asyncio", "uvicorn.error")]

    def emit(self, record: logging.LogRecord) -> None:
        """Note a record."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return
        self.errors.append(f"{record.getMessage().splitlines()[0]}: {type(error).__name__}: {error}")
        if self.stub is None and stub_of(error):
            self.stub = error
            self.on_stub()

    def __enter__(self) -> "Watch":
        self._before = [(logger, logger.propagate, logger.handlers[:]) for logger in self._loggers]
        for logger in self._loggers:
            # Expected errors would else fill the report of a case that passes.
            logger.propagate, logger.handlers = False, [self]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        for logger, propagate, handlers in self._before:
            logger.propagate, logger.handlers = propagate, handlers
        if self.stub is not None:
            raise self.stub
