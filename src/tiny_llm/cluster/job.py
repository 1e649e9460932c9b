"""A request of a simulated deployment as its front end sees it."""

from dataclasses import dataclass

from .handoff import Transfer
from .record import Record
from .trace_request import TraceRequest
from .worker import Worker
from .workload import Arrival


@dataclass(slots=True)
class Job:
    """A request that has not ended. request: as its engine sees it. worker: where it is; None: at the router.

    moves: how often it was sent again.
    """

    uid: int
    arrival: Arrival
    record: Record
    request: TraceRequest
    worker: Worker | None = None
    moves: int = 0

    @property
    def parts(self) -> tuple[TraceRequest, ...]:
        """All that engines may have of it."""
        return (self.request,)


@dataclass(slots=True)
class SplitJob(Job):
    """A request of two workers.

    prompt: the clone that computes its prompt elsewhere; transfer: the hand-off; hits: cached tokens of the prompt.
    apart: whether the prompt comes to the decode worker from elsewhere.
    """

    prompt: TraceRequest | None = None
    transfer: Transfer | None = None
    hits: int = 0
    apart: bool = False

    @property
    def parts(self) -> tuple[TraceRequest, ...]:
        """All that engines may have of it."""
        return (self.request,) if self.prompt is None else (self.prompt, self.request)
