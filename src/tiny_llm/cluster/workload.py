# This file is yours to edit. Read book/src/week4-02-workloads-and-slos.md.
"""What arrives when: requests that wait for nobody, at a rate, as bursty as you like, with prompts that share prefixes.

Times are whole nanoseconds from the start of the run. Randomness comes in as a NumPy generator: equal seeds, equal
workloads. Knows token counts and block ids; no ids of tokens, no servers.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

SECOND = 1_000_000_000
BLOCK_TOKENS = 512
"""Tokens that one hash id of a trace stands for, as in Mooncake's."""


# ANCHOR: arrival
class Arrival(NamedTuple):
    """One request of a workload, seen from outside.

    time_ns: when it reaches the front end. input_length, output_length: tokens.
    hash_ids: one for each block of the prompt, the last one may be partial.
    Equal ids: equal blocks after equal blocks. session: whose turn it is.
    """

    time_ns: int
    input_length: int
    output_length: int
    hash_ids: tuple[int, ...] = ()
    session: int | None = None

    # ANCHOR_END: arrival


# ANCHOR: workload
class Workload(Protocol):
    """Where requests come from.

    block_tokens: tokens that one hash id stands for.
    """

    block_tokens: int

    def initial(self) -> Iterator[Arrival]:
        """Those that wait for no answer, in the order of their times."""
        ...

    def after(self, done: Arrival, now: int) -> Arrival | None:
        """What follows the answer to `done`, complete at `now`.

        Its time is not before `now`. None: nothing does.
        """
        ...

    # ANCHOR_END: workload


@dataclass(frozen=True)
class OpenLoop:
    """Arrivals that wait for nobody: a trace, or what `generate` gives."""

    arrivals: Sequence[Arrival]
    block_tokens: int = BLOCK_TOKENS

    def initial(self) -> Iterator[Arrival]:
        """All of them, in the order of their times."""
        return iter(sorted(self.arrivals, key=lambda arrival: arrival.time_ns))

    def after(self, done: Arrival, now: int) -> None:
        """Nothing follows an answer."""


# ANCHOR: lengths
@dataclass(frozen=True)
class Lengths:
    """Token counts, log-normal: most near the mean, a few far above it.

    mean: tokens, at least 1. cv: standard deviation over mean; 0 for equal
    lengths. most: longer ones are cut to it.
    """

    mean: float
    cv: float = 0.0
    most: int | None = None

    # ANCHOR_END: lengths

    def __post_init__(self) -> None:
        if self.mean < 1 or self.cv < 0:
            raise ValueError(f"lengths of mean {self.mean}, cv {self.cv}: expected at least 1, and at least 0")

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """`n` lengths, (n) int64, each at least 1."""
        variance = math.log1p(self.cv**2)
        lengths = self.mean * np.exp(math.sqrt(variance) * rng.standard_normal(n) - variance / 2)
        return np.clip(np.rint(lengths), 1, self.most).astype(np.int64)


def arrival_times(rng: np.random.Generator, rate: float, n: int, burstiness: float = 1.0) -> np.ndarray:
    """Times of `n` arrivals at `rate` per second, (n) int64 in ns, not decreasing.

    The gaps are independent and Gamma distributed with shape `burstiness`, as in vLLM's benchmark: 1 is a Poisson
    process, below 1 burstier, infinity one arrival every 1 / rate. Their standard deviation is mean / sqrt(burstiness).
    A gap stands before the first arrival too.
    Raises ValueError, with the value, for a rate or burstiness that is not positive.
    """
    raise NotImplementedError("Week 4 Day 2 Task 1: arrival_times - see book/src/week4-02-workloads-and-slos.md#task-1")


def zipf(rng: np.random.Generator, kinds: int, exponent: float, n: int) -> np.ndarray:
    """`n` draws from 0 .. kinds - 1, (n) int64: k comes with a probability proportional to 1 / (k + 1) ** exponent."""
    raise NotImplementedError("Week 4 Day 2 Task 1: zipf - see book/src/week4-02-workloads-and-slos.md#task-1")


@dataclass(frozen=True)
class SharedPrefixes:
    """System prompts: `kinds` of them, each of `tokens`; how popular they are follows Zipf's law with `exponent`."""

    kinds: int
    tokens: int
    exponent: float = 1.0


def blocks(length: int, block_tokens: int = BLOCK_TOKENS) -> int:
    """Blocks that `length` tokens take, the last one perhaps in part."""
    return -(-length // block_tokens)


def generate(
    rng: np.random.Generator,
    times: np.ndarray,
    inputs: Lengths,
    outputs: Lengths,
    prefixes: SharedPrefixes | None = None,
    block_tokens: int = BLOCK_TOKENS,
) -> list[Arrival]:
    """Requests at `times` (ns), prompts and answers of independent lengths.

    With `prefixes` each prompt is a system prompt and then `inputs` tokens of its own; its whole blocks of the system
    prompt carry the ids of that prompt, all other blocks ids of their own.
    """
    raise NotImplementedError("Week 4 Day 2 Task 1: generate - see book/src/week4-02-workloads-and-slos.md#task-1")


def speed_up(arrivals: Iterable[Arrival], factor: float) -> list[Arrival]:
    """The same requests, `factor` times as fast. Raises ValueError for a factor that is not positive."""
    if not factor > 0:
        raise ValueError(f"speed-up by {factor}: expected a factor above 0")
    return [arrival._replace(time_ns=round(arrival.time_ns / factor)) for arrival in arrivals]
