# This file is yours to edit. Read book/src/week4-05-disaggregation.md.
"""Three ways in which a prompt computed by one worker gets to another one: who learns what, and when.

Knows names and numbers. Each hand-off has a name of its own: a request that is tried again under the same uid is
another hand-off, and whatever arrives late for the first one finds nobody.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from .indexer import Worker


class HandOff(StrEnum):
    """When the decode worker is told.

    PULL: when the prompt is computed, with what the prefill worker answered. PUSH: at once, what it must know of the
    prefill worker comes from discovery. BOOTSTRAP: at once, both are told a room where they meet.
    """

    PULL = "pull"
    PUSH = "push"
    BOOTSTRAP = "bootstrap"

    @property
    def concurrent(self) -> bool:
        """Whether both workers are told at the same time."""
        return self is not HandOff.PULL


# ANCHOR: ticket
class Transfer(NamedTuple):
    """The name of one hand-off.

    generation: a number that no other one has, the room in bootstrap.
    """

    uid: int
    generation: int


class Peer(NamedTuple):
    """What discovery tells of a prefill worker.

    ranks: its tensor-parallel size. dp_ranks: engines that share its address;
    dp_rank: which of them it is.
    """

    worker: Worker
    ranks: int = 1
    address: str = ""
    dp_rank: int = 0
    dp_ranks: int = 1


class Ticket(NamedTuple):
    """What a decode worker must know to get a prompt. worker: who computes it."""

    transfer: Transfer
    worker: Worker
    ranks: int = 1
    address: str = ""
    # ANCHOR_END: ticket


@dataclass
class Tickets:
    """Gives each hand-off its name. last: the generation that was given last."""

    hand_off: HandOff
    last: int = 0

    def issue(self, uid: int, peer: Peer) -> Ticket:
        """A ticket for a prompt that goes to `peer`.

        A room tells which of the engines at the address it belongs to: room % dp_ranks = dp_rank.
        """
        raise NotImplementedError("Week 4 Day 5 Task 2: Tickets.issue - see book/src/week4-05-disaggregation.md#task-2")
