# This file is yours to edit. Read book/src/week4-02-workloads-and-slos.md.
"""Workloads in which people wait for their answer: a fixed number of users, and conversations of several turns."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, islice

import numpy as np

from .workload import BLOCK_TOKENS, SECOND, Arrival, Lengths, blocks


# ANCHOR: people
@dataclass(kw_only=True)
class People:
    """Who ask, wait for the answer, think, and may ask again.

    inputs, outputs: tokens of a question, and of its answer. think: mean
    seconds from an answer to the next question, exponential; 0 for none.
    """

    rng: np.random.Generator
    inputs: Lengths
    outputs: Lengths
    think: float = 0.0
    block_tokens: int = BLOCK_TOKENS
    fresh: Iterator[int] = field(default_factory=count, init=False)

    def ask(self, time: int, session: int, said: int = 0, ids: tuple[int, ...] = ()) -> Arrival:
        """The next question of a session: behind the `said` tokens before it.

        ids: of the whole blocks at its front. The others are new to everybody.
        """
        new, answer = (int(lengths.sample(self.rng, 1)[0]) for lengths in (self.inputs, self.outputs))
        missing = blocks(said + new, self.block_tokens) - len(ids)
        return Arrival(time, said + new, answer, (*ids, *islice(self.fresh, missing)), session)

    def thought(self, now: int) -> int:
        """When somebody who begins to think at `now` has thought, in ns."""
        return now + round(self.rng.exponential(self.think) * SECOND)

    # ANCHOR_END: people


@dataclass(kw_only=True)
class ClosedLoop(People):
    """`users` who ask again and again, until `requests` were asked in all. Each question is a new conversation.

    The throughput cannot exceed users / (response time + think): a slow server slows its own load (Little's law).
    """

    users: int
    requests: int

    def __post_init__(self) -> None:
        if self.users < 1 or self.think < 0:
            raise ValueError(f"{self.users} users who think {self.think} s: expected at least 1, and no negative time")
        self.left = self.requests

    def initial(self) -> Iterator[Arrival]:
        """The first question of each user, all at 0."""
        first = min(self.users, self.left)
        self.left -= first
        return (self.ask(0, user) for user in range(first))

    def after(self, done: Arrival, now: int) -> Arrival | None:
        """The same user's next question, once it has thought."""
        raise NotImplementedError(
            "Week 4 Day 2 Task 1: ClosedLoop.after - see book/src/week4-02-workloads-and-slos.md#task-1"
        )


@dataclass(kw_only=True)
class Conversations(People):
    """Sessions that begin at `times` (ns), each of `turns`: a turn waits for the answer to the one before.

    The prompt of a turn is all that was said before, the answers too, and `inputs` new tokens. So the whole blocks of
    the last prompt come again; those with tokens of an answer are new to any cache of prompts.
    """

    times: np.ndarray
    turns: Lengths

    def __post_init__(self) -> None:
        self.left: list[int] = self.turns.sample(self.rng, len(self.times)).tolist()

    def initial(self) -> Iterator[Arrival]:
        """The first turn of each session."""
        for session, time in enumerate(self.times.tolist()):
            self.left[session] -= 1
            yield self.ask(time, session)

    def after(self, done: Arrival, now: int) -> Arrival | None:
        """The next turn of the session, if it has one."""
        raise NotImplementedError(
            "Week 4 Day 2 Task 1: Conversations.after - see book/src/week4-02-workloads-and-slos.md#task-1"
        )
