"""What a replica tells of its work: which batch ran when, and which request ended. Whoever measures listens here."""

from collections.abc import Sequence
from typing import Protocol

from ..serving.request import Batch, Request


# ANCHOR: sink
class Sink(Protocol):
    """Who takes down what a replica does. Times are ns."""

    def ran(self, batch: Batch, start: int, ends: Sequence[int]) -> None:
        """`batch` ran from `start`, once until each of `ends`.

        At each end every step that samples has chosen a token; it counts where its
        request has no finish_reason. Positions are those of the first run.
        """
        ...

    def ended(self, request: Request, time: int) -> None:
        """A request has its finish_reason.

        Once for each that was accepted, after its last `ran`.
        """
        ...

    # ANCHOR_END: sink
