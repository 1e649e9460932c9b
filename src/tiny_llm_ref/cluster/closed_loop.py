"""Workloads in which people wait for their answer: a fixed number of users, and conversations of several turns."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from .workload import BLOCK_TOKENS, SECOND, Arrival, Lengths, blocks


class ClosedLoop:
    """`users` who each ask, wait for the answer, think, and ask again, until `requests` were asked in all.

    think: mean seconds between an answer and the next question, exponential; 0 for none. The throughput cannot exceed
    users / (response time + think): a slow server slows its own load (Little's law).
    """

    def __init__(
        self,
        rng: np.random.Generator,
        users: int,
        requests: int,
        inputs: Lengths,
        outputs: Lengths,
        think: float = 0.0,
        block_tokens: int = BLOCK_TOKENS,
    ):
        if users < 1 or think < 0:
            raise ValueError(f"{users} users who think {think} s: expected at least 1 user, and no negative time")
        self.rng, self.users, self.left, self.think = rng, users, requests, think
        self.inputs, self.outputs, self.block_tokens = inputs, outputs, block_tokens
        self.fresh = count()

    def ask(self, user: int, time: int) -> Arrival:
        """The next question of a user."""
        self.left -= 1
        length, answer = (int(lengths.sample(self.rng, 1)[0]) for lengths in (self.inputs, self.outputs))
        ids = tuple(next(self.fresh) for _ in range(blocks(length, self.block_tokens)))
        return Arrival(time, length, answer, ids, user)

    def initial(self) -> Iterator[Arrival]:
        """The first question of each user, all at 0."""
        return iter([self.ask(user, 0) for user in range(min(self.users, self.left))])

    def after(self, done: Arrival, now: int) -> Arrival | None:
        """The same user's next question, once it has thought."""
        if self.left <= 0 or done.session is None:
            return None
        return self.ask(done.session, now + round(self.rng.exponential(self.think) * SECOND))


@dataclass
class Conversation:
    """What was said so far. tokens: of all turns. ids: the hash ids of its whole blocks that were in a prompt."""

    turns_left: int
    tokens: int = 0
    ids: tuple[int, ...] = ()


class Conversations:
    """Sessions that begin at `times` (ns), each of several turns: a turn waits for the answer to the one before.

    The prompt of a turn is all that was said before, the answers too, and `inputs` new tokens. So its whole blocks
    that were in the last prompt come again; those with tokens of an answer are new to any cache of prompts.
    think: mean seconds from an answer to the next turn, exponential. turns: how many a session has.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        times: np.ndarray,
        turns: Lengths,
        inputs: Lengths,
        outputs: Lengths,
        think: float = 0.0,
        block_tokens: int = BLOCK_TOKENS,
    ):
        self.rng, self.times, self.think = rng, times, think
        self.inputs, self.outputs, self.block_tokens = inputs, outputs, block_tokens
        self.sessions = [Conversation(turns_left) for turns_left in turns.sample(rng, len(times)).tolist()]
        self.fresh = count()

    def turn(self, session: int, time: int) -> Arrival:
        """The next turn of a session."""
        said = self.sessions[session]
        said.turns_left -= 1
        new, answer = (int(lengths.sample(self.rng, 1)[0]) for lengths in (self.inputs, self.outputs))
        length = said.tokens + new
        missing = blocks(length, self.block_tokens) - len(said.ids)
        ids = (*said.ids, *(next(self.fresh) for _ in range(missing)))
        said.tokens, said.ids = length + answer, ids[: length // self.block_tokens]
        return Arrival(time, length, answer, ids, session)

    def initial(self) -> Iterator[Arrival]:
        """The first turn of each session."""
        return (self.turn(session, time) for session, time in enumerate(self.times.tolist()))

    def after(self, done: Arrival, now: int) -> Arrival | None:
        """The next turn of the session, if it has one."""
        if done.session is None or not self.sessions[done.session].turns_left:
            return None
        return self.turn(done.session, now + round(self.rng.exponential(self.think) * SECOND))
