# This file is yours to edit. Read book/src/week4-02-workloads-and-slos.md.
"""Goodput: the answers that were good enough, and the highest rate at which enough are (Zhong et al., DistServe)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .record import Record
from .window import Window


@dataclass(frozen=True)
class Objective:
    """Service level objectives, upper bounds in ns; None for no bound."""

    ttft: int | None = None
    tpot: int | None = None
    e2e: int | None = None

    def met(self, record: Record) -> bool:
        """Whether a request had its whole answer and meets all bounds. With one token there is no TPOT to miss."""
        raise NotImplementedError(
            "Week 4 Day 2 Task 2: Objective.met - see book/src/week4-02-workloads-and-slos.md#task-2"
        )


def attainment(records: Sequence[Record], objective: Objective, window: Window) -> float:
    """The share of the requests that arrived in the window that meet the objective.

    A request that was rejected, aborted or has not ended counts as one that does not. 1 without any request.
    """
    raise NotImplementedError("Week 4 Day 2 Task 2: attainment - see book/src/week4-02-workloads-and-slos.md#task-2")


def goodput(records: Sequence[Record], objective: Objective, window: Window) -> float:
    """Requests per second that meet all objectives: those that ended in the window."""
    raise NotImplementedError("Week 4 Day 2 Task 2: goodput - see book/src/week4-02-workloads-and-slos.md#task-2")


def highest_rate(
    attained: Callable[[float], float], low: float, high: float, target: float = 0.9, tolerance: float = 0.01
) -> float:
    """The highest rate whose attainment is at least `target`, by bisection, to `tolerance` times that rate.

    attained(rate) -> share of requests: a whole run at this rate. DistServe reports this, per GPU. Returns 0 where
    `low` is already too fast, and `high` where that is not. Raises ValueError unless 0 < low < high.
    """
    raise NotImplementedError("Week 4 Day 2 Task 2: highest_rate - see book/src/week4-02-workloads-and-slos.md#task-2")
