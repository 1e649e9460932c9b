"""Structured cancellation: one signal tells a task, and all that it awaits, to stop."""

from collections.abc import Callable


class Signal:
    """Tells tasks to stop. cancelled: whether it has been emitted; it stays so."""

    def __init__(self) -> None:
        self.cancelled = False
        self.handlers: dict[object, Callable[[], object]] = {}

    def connect(self, handler: Callable[[], object]) -> object:
        """Call `handler` when it is emitted, at once where it was. Returns a key for `disconnect`."""
        key = object()
        if self.cancelled:
            handler()
        else:
            self.handlers[key] = handler
        return key

    def disconnect(self, key: object) -> None:
        """Forget a handler. Idempotent."""
        self.handlers.pop(key, None)

    def emit(self) -> None:
        """Call the handlers, the oldest first, each once."""
        self.cancelled = True
        while self.handlers:
            self.handlers.pop(next(iter(self.handlers)))()
