"""A batch that runs under virtual time, from its launch to its end."""

from collections.abc import Sequence
from typing import NamedTuple

from ..serving.request import Batch
from .kernel import Event


# ANCHOR: flight
class Flight(NamedTuple):
    """A launched batch. Times are ns.

    ends: of this step, and of equal ones after it. done: the event of the last.
    """

    batch: Batch
    start: int
    ends: Sequence[int]
    done: Event
    # ANCHOR_END: flight
