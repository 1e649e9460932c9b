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
        pairs = ((record.ttft, self.ttft), (record.tpot, self.tpot), (record.e2e, self.e2e))
        return record.complete and all(value is None or bound is None or value <= bound for value, bound in pairs)


def attainment(records: Sequence[Record], objective: Objective, window: Window) -> float:
    """The share of the requests that arrived in the window that meet the objective.

    A request that was rejected, aborted or has not ended counts as one that does not. 1 without any request.
    """
    mine = [record for record in records if window.start <= record.arrival < window.end]
    return sum(map(objective.met, mine)) / len(mine) if mine else 1.0


def goodput(records: Sequence[Record], objective: Objective, window: Window) -> float:
    """Requests per second that meet all objectives: those that ended in the window."""
    ended = (record for record in records if record.done is not None and window.start <= record.done < window.end)
    return sum(map(objective.met, ended)) / window.seconds


def highest_rate(
    attained: Callable[[float], float], low: float, high: float, target: float = 0.9, tolerance: float = 0.01
) -> float:
    """The highest rate whose attainment is at least `target`, by bisection, to `tolerance` times that rate.

    attained(rate) -> share of requests: a whole run at this rate. DistServe reports this, per GPU. Returns 0 where
    `low` is already too fast, and `high` where that is not. Raises ValueError unless 0 < low < high.
    """
    if not 0 < low < high:
        raise ValueError(f"rates from {low} to {high}: expected 0 < low < high")
    if attained(low) < target:
        return 0.0
    if attained(high) >= target:
        return high
    while high - low > tolerance * low:
        middle = (low + high) / 2
        low, high = (middle, high) if attained(middle) >= target else (low, middle)
    return low
