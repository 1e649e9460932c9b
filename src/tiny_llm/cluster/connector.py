# This file is yours to edit. Read book/src/week4-05-disaggregation.md.
"""What the two sides of a KV connector tell each other and whoever moves bytes, and who sends which heads to whom.

Knows names, page numbers and counts of heads; no time passes here. After vLLM's MooncakeConnector.
"""

from typing import NamedTuple

from ..serving.request import Request
from .handoff import Transfer
from .indexer import Worker

EXPIRY_NS = 480 * 10**9
"""How long a prefill worker keeps pages that nobody takes, and how long a question for them is good."""
GRACE_NS = 60 * 10**9
"""How much longer a copy may last that began in time."""


class Part(NamedTuple):
    """Rank `source` of the prefill worker sends heads first .. first + heads - 1 to rank `target` of the other one."""

    source: int
    target: int
    first: int
    heads: int


def heads_of(rank: int, ranks: int, kv_heads: int) -> range:
    """KV heads of a rank. Where there are more ranks than heads, several have the same one.

    Raises ValueError unless one of the two numbers divides the other.
    """
    if kv_heads % ranks and ranks % kv_heads:
        raise ValueError(f"{kv_heads} KV heads cannot be spread over {ranks} ranks: one must divide the other")
    each = max(kv_heads // ranks, 1)
    first = rank * kv_heads // ranks
    return range(first, first + each)


def parts(kv_heads: int, sources: int, targets: int) -> list[Part]:
    """Who sends what, where `sources` ranks computed a prompt and `targets` ranks need it.

    Each target gets each of its heads once; of several sources that have a head, only the first sends it.
    """
    raise NotImplementedError("Week 4 Day 5 Task 3: parts - see book/src/week4-05-disaggregation.md#task-3")


# ANCHOR: orders
class Ask(NamedTuple):
    """Rank `rank` of a decode worker's `ranks` to the prefill worker: fill these.

    pages: for the last ones of the prompt; none where all is cached.
    until: ns, nothing may begin to be written then or later.
    """

    transfer: Transfer
    worker: Worker
    rank: int
    ranks: int
    pages: tuple[int, ...]
    until: int


class Release(NamedTuple):
    """To the prefill worker: nobody will take this prompt any more."""

    transfer: Transfer
    worker: Worker


class Refused(NamedTuple):
    """The answer to an `Ask`: nothing was or will be written for this rank."""

    transfer: Transfer
    rank: int


class Copy(NamedTuple):
    """To the mover: copy pages, (source, target) each.

    until: ns, nothing may be written then or later: what is under way has failed.
    """

    transfer: Transfer
    part: Part
    pages: tuple[tuple[int, int], ...]
    until: int


class Start(NamedTuple):
    """To the scheduler of the decode worker: run this request."""

    request: Request


class Stop(NamedTuple):
    """To the client: this request has failed."""

    request: Request
    # ANCHOR_END: orders


Order = Ask | Release | Refused | Copy | Start | Stop
