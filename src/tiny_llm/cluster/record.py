# This file is yours to edit. Read book/src/week4-02-workloads-and-slos.md.
"""What is noted of one request on its way, all times in ns, and what must be true of them in every run."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np


class InvariantError(AssertionError):
    """A simulation contradicts itself. This is a bug of the simulator or a policy, never of a workload."""


# ANCHOR: record
@dataclass(slots=True)
class Record:
    """The time stamps of one request.

    None: that has not happened, or has no place in this deployment.

    input_length: tokens. arrival: at the front end. prefill_start, prefill_end:
    of the first launch, and of the step that chose the first token.
    transfer_*: of its KV, between two workers. decode_start: of the first step
    after the first token. done: its end left the front end.
    spans: when its tokens left it, in pieces: requests of one batch share them.
    hit_tokens: of its prompt, found in a cache. blocks, hit_blocks: the same in
    blocks. prefill_worker, decode_worker: names of those who served it last.
    migrations: how often it went on elsewhere. finish_reason: as of an
    `Output`; "rejected" for one never let in.
    """

    uid: int
    input_length: int
    arrival: int
    prefill_start: int | None = None
    prefill_end: int | None = None
    transfer_start: int | None = None
    transfer_end: int | None = None
    decode_start: int | None = None
    done: int | None = None
    spans: list[Sequence[int]] = field(default_factory=list)
    hit_tokens: int = 0
    blocks: int = 0
    hit_blocks: int = 0
    prefill_worker: str | None = None
    decode_worker: str | None = None
    migrations: int = 0
    finish_reason: str | None = None

    # ANCHOR_END: record

    @property
    def complete(self) -> bool:
        """Whether it had its whole answer."""
        return self.finish_reason in ("stop", "length")

    @property
    def output_length(self) -> int:
        """Tokens that left."""
        return sum(len(span) for span in self.spans)

    @property
    def token_times(self) -> np.ndarray:
        """When each token left, (output_length) int64."""
        return np.concatenate([np.asarray(span, np.int64) for span in self.spans] or [np.zeros(0, np.int64)])

    def lose(self, now: int) -> None:
        """Tokens that have not left at `now` never will."""
        spans = (np.asarray(span, np.int64) for span in self.spans)
        self.spans = [left for span in spans if len(left := span[span <= now])]

    @property
    def first_token(self) -> int | None:
        """When the first token left."""
        return int(self.spans[0][0]) if self.spans else None

    @property
    def ttft(self) -> int | None:
        """Time to first token: from the arrival to the first token leaving the front end."""
        raise NotImplementedError(
            "Week 4 Day 2 Task 2: Record.ttft - see book/src/week4-02-workloads-and-slos.md#task-2"
        )

    @property
    def e2e(self) -> int | None:
        """End-to-end time: from the arrival to the end."""
        raise NotImplementedError(
            "Week 4 Day 2 Task 2: Record.e2e - see book/src/week4-02-workloads-and-slos.md#task-2"
        )

    @property
    def tpot(self) -> float | None:
        """Time per output token after the first: (E2E - TTFT) / (n - 1). None for fewer than two tokens."""
        raise NotImplementedError(
            "Week 4 Day 2 Task 2: Record.tpot - see book/src/week4-02-workloads-and-slos.md#task-2"
        )

    def check(self) -> None:
        """Raise InvariantError unless its time stamps are in the order of its way, and its tokens inside them."""
        names = ["arrival", "prefill_start", "prefill_end", "transfer_start", "transfer_end", "decode_start", "done"]
        stamps = [(name, time) for name in names if (time := getattr(self, name)) is not None]
        for (before, earlier), (after, later) in pairwise(stamps):
            if later < earlier:
                raise InvariantError(f"request {self.uid}: {after} at {later} ns is before {before} at {earlier} ns")
        edges = [self.arrival, *(int(span[place]) for span in self.spans for place in (0, -1))]
        if self.done is not None:
            edges.append(self.done)
        if any(later < earlier for earlier, later in pairwise(edges)):
            raise InvariantError(f"request {self.uid}: arrival, tokens and end are at {edges} ns, out of order")
        if not 0 <= self.hit_tokens <= self.input_length:
            raise InvariantError(f"request {self.uid}: {self.hit_tokens} of its {self.input_length} tokens were cached")


# ANCHOR: conserved
def check_conserved(injected: int, done: int, queued: int, running: int, rejected: int) -> None:
    """Each request that came is one of the four.

    Raises InvariantError where the sum is another.
    """
    if injected != done + queued + running + rejected:
        raise InvariantError(
            f"{injected} requests came, but {done} are done, {queued} queued, {running} running, {rejected} rejected: "
            f"{done + queued + running + rejected} in all"
        )
        # ANCHOR_END: conserved
