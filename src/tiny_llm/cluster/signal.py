"""Structured cancellation: one signal tells a task, and all that it awaits, to stop."""

from collections.abc import Callable


class Signal:
    """Tells tasks to stop. cancelled: whether it has been emitted; it stays so."""

    def __init__(self) -> None:
        self.cancelled = False
        self.handlers: dict[Callable[[], object], None] = {}

    def connect(self, handler: Callable[[], object]) -> None:
        """Call `handler` when it is emitted."""
        self.handlers[handler] = None

    def disconnect(self, handler: Callable[[], object]) -> None:
        """Forget a handler. Idempotent."""
        self.handlers.pop(handler, None)

    def emit(self) -> None:
        """Call the handlers, the oldest first, each once."""
        self.cancelled = True
        while self.handlers:
            handler = next(iter(self.handlers))
            self.disconnect(handler)
            handler()
