# This file is yours to edit. Read book/src/week3-01-continuous-batching.md.
"""One request and its share of a batch: how much of it the device has computed, and how much the host has read.

The lengths advance when a step is launched, the ids when its result is read. So the next batch can be built before the
token of this one is known. Knows token counts; nothing of memory, models or time. The names are Mini-SGLang's.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..text.sampler import SamplingParams

GREEDY = SamplingParams(temperature=0.0)


@dataclass(eq=False)
class Request:
    """What a client asked for, and how far it is.

    uid: unique among the requests that have not ended. ids: the prompt; results are appended. max_tokens: results that
    it may have. stop_tokens: a result that ends it. logprobs: alternatives to report with each token, None for none.
    Raises ValueError for an empty prompt or `max_tokens` below 1.

    cached_len: positions whose keys and values have been computed, by launched steps. device_len: positions that the
    device knows the tokens of, the one that is still being computed included. Always
    0 <= cached_len < device_len <= max_device_len.
    """

    uid: int
    ids: list[int]
    max_tokens: int
    sampling: SamplingParams = GREEDY
    stop_tokens: frozenset[int] = frozenset()
    logprobs: int | None = None
    row: int | None = field(default=None, init=False)
    """Its row of the page table, while it has one."""
    cached_len: int = field(default=0, init=False)
    hit_tokens: int | None = field(default=None, init=False)
    """Tokens of it that the prefix cache had when it was first admitted; None before."""
    in_flight: int = field(default=0, init=False)
    """Steps that were launched and not read yet."""
    finish_reason: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not self.ids:
            raise ValueError(f"request {self.uid} has an empty prompt: a model needs at least one token to start from")
        if self.max_tokens < 1:
            raise ValueError(f"request {self.uid} has max_tokens {self.max_tokens}: expected at least 1")
        self.prompt_len = self.device_len = len(self.ids)
        self.max_device_len = self.prompt_len + self.max_tokens

    @property
    def extend_len(self) -> int:
        """Tokens that must run before the next one can be chosen."""
        return self.device_len - self.cached_len

    @property
    def remain_len(self) -> int:
        """Tokens that may still be chosen, those of launched steps not counted."""
        return self.max_device_len - self.device_len

    def launch(self, tokens: int) -> "Step":
        """Count the next `tokens` of `extend_len` as launched. Those that reach the last one also choose the next.

        Advances cached_len, and device_len if a token is chosen. Returns the step.
        Raises ValueError unless 1 <= tokens <= extend_len, and where no token may be chosen any more.
        """
        raise NotImplementedError(
            "Week 3 Day 1 Task 1: Request.launch - see book/src/week3-01-continuous-batching.md#task-1"
        )

    def append(self, token: int) -> str | None:
        """Take the result of a step. Returns why it ends the request: "stop", "length", or None.

        Raises ValueError for a token that no launched step has chosen.
        """
        raise NotImplementedError(
            "Week 3 Day 1 Task 1: Request.append - see book/src/week3-01-continuous-batching.md#task-1"
        )

    def reset(self) -> None:
        """Forget what the device has computed, as after preemption. The ids stay: they are the prompt to compute again.

        Raises ValueError with a step in flight.
        """
        raise NotImplementedError(
            "Week 3 Day 1 Task 1: Request.reset - see book/src/week3-01-continuous-batching.md#task-1"
        )

    def page_keys(self, page_size: int, tokens: int) -> list[Hashable]:
        """What identifies each whole page of the first `tokens` positions, given the pages before it.

        Here the ids of the page; whoever replays a trace gives the trace's block hashes.
        """
        return [tuple(self.ids[i : i + page_size]) for i in range(0, tokens - page_size + 1, page_size)]


# ANCHOR: step
class Step(NamedTuple):
    """A request's share of a batch: positions start .. end - 1 are computed.

    samples: whether the last of them chooses a token.
    """

    request: Request
    start: int
    end: int
    samples: bool


@dataclass(frozen=True)
class Batch:
    """The steps of one forward, in the order of their rows."""

    steps: tuple[Step, ...]

    @property
    def tokens(self) -> int:
        """Tokens that run."""
        return sum(step.end - step.start for step in self.steps)

    @property
    def sampling(self) -> list[Step]:
        """The steps that choose a token."""
        return [step for step in self.steps if step.samples]

    # ANCHOR_END: step


# ANCHOR: output
class Sampled(NamedTuple):
    """A chosen token.

    With log-probabilities: its own, and the best tokens with theirs, best first.
    """

    token: int
    logprob: float | None = None
    top: Sequence[tuple[int, float]] = ()


class Output(NamedTuple):
    """What one request gives after a step: a token, or its end, or both.

    finish_reason: "stop", "length", "abort" or "error". Every accepted request
    gives exactly one output with a finish reason, and none after it.
    """

    uid: int
    sampled: Sampled | None
    finish_reason: str | None
    # ANCHOR_END: output
