"""Where a request of two stages is, and what is told to whom on its way."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from .connector import Release
from .handoff import Ticket
from .indexer import Worker
from .routing import RouteRequest


class PoolState(Enum):
    """Of the prefill pool. PENDING: nobody has come yet. ACTIVE: somebody serves. UNAVAILABLE: all have gone."""

    PENDING = "pending"
    ACTIVE = "active"
    UNAVAILABLE = "unavailable"


# ANCHOR: orders
class Prefill(NamedTuple):
    """To a prefill worker: compute the prompt, choose one token, keep the pages."""

    uid: int
    worker: Worker
    ticket: Ticket


class Decode(NamedTuple):
    """To a decode worker: the whole answer. ticket: where the prompt is; None: compute it."""

    uid: int
    worker: Worker
    ticket: Ticket | None


class Cancel(NamedTuple):
    """To a decode worker: the client has left."""

    uid: int
    worker: Worker


class Fail(NamedTuple):
    """To the client, or to whoever tries again. reason: "overloaded", "prefill", "worker lost"."""

    uid: int
    reason: str
    # ANCHOR_END: orders


RouteOrder = Prefill | Decode | Cancel | Release | Fail


# ANCHOR: journey
@dataclass(eq=False)
class Journey:
    """How far a request is.

    ticket: None before its prompt has a worker, and for good if the decode worker computes it.
    prefilling: its prompt is waiting or being computed elsewhere. decoder: None before it is told.
    """

    request: RouteRequest
    ticket: Ticket | None = None
    prefilling: bool = False
    decoder: Worker | None = None
    # ANCHOR_END: journey
