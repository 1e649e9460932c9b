"""Time that only a test moves, and orders of events that a seed decides: what is concurrent becomes repeatable.

Knows nothing of engines.
"""

import asyncio
import random
import selectors
from collections.abc import Coroutine, Iterator, Mapping
from typing import TypeVar

T = TypeVar("T")


class Clock:
    """A clock in seconds that stands still until it is moved."""

    def __init__(self, now: float = 0.0):
        self.now = now

    def __call__(self) -> float:
        """The time, as `time.monotonic()` tells it."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Move it. Raises ValueError for a step back."""
        if seconds < 0:
            raise ValueError(f"a clock does not go back {-seconds} s")
        self.now += seconds


def interleave(seed: int, processes: Mapping[str, Iterator[object]]) -> list[str]:
    """Run generators to their ends, each step one of those the seed chooses. Returns the names, in this order."""
    rng, order, alive = random.Random(seed), [], dict(processes)
    while alive:
        name = rng.choice(sorted(alive))
        try:
            next(alive[name])
            order.append(name)
        except StopIteration:
            del alive[name]
    return order


def orders(counts: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """Every order in which `counts[name]` steps of each name can come: for a few steps, all of them can be tried."""
    if not any(counts.values()):
        yield ()
    for name, count in counts.items():
        if count:
            for rest in orders({**counts, name: count - 1}):
                yield (name, *rest)


class Deadlock(RuntimeError):
    """Every task waits, and nothing will ever wake one."""


class _NoWait(selectors.SelectSelector):
    """Never waits: where the loop would sleep, its clock moves on instead."""

    def __init__(self, clock: Clock):
        super().__init__()
        self.clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise Deadlock(f"all tasks wait for each other at {self.clock.now:g} s")
        if not ready and timeout:
            self.clock.advance(timeout)
        return ready


def run(main: Coroutine[object, object, T], clock: Clock | None = None) -> T:
    """`asyncio.run` in virtual time: sleeping takes none, and a deadlock is an error at once.

    For coroutines of one thread without sockets. Raises Deadlock.
    """
    clock = clock or Clock()
    loop = asyncio.SelectorEventLoop(_NoWait(clock))
    loop.time = clock
    loop.slow_callback_duration = float("inf")
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main)
