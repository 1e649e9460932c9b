"""The two ceilings of this machine, measured by the reference's C++ library, which is built first if need be."""

import os
from dataclasses import dataclass
from functools import partial

from course.kernels import extension
from course.paths import REFERENCE
from course.timing import Spread, in_turn
from course.variant import build


@dataclass(frozen=True)
class Size:
    """How long to look. megabytes: read per pass, several times the last cache, but for a quick look."""

    megabytes: int
    seconds: float
    rounds: int


FULL = Size(megabytes=512, seconds=0.3, rounds=5)
QUICK = Size(megabytes=16, seconds=0.02, rounds=2)


@dataclass(frozen=True)
class Ceilings:
    """Bytes/s that are read from memory, and FLOP/s in float32, by thread count."""

    bandwidth: dict[int, Spread]
    flops: dict[int, Spread]

    @property
    def most_bandwidth(self) -> float:
        """Of any thread count."""
        return max(spread.median for spread in self.bandwidth.values())

    @property
    def most_flops(self) -> float:
        """Of any thread count."""
        return max(spread.median for spread in self.flops.values())


def thread_counts() -> list[int]:
    """One, and all that this process may use."""
    everyone = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return sorted({1, everyone})


def measure_ceilings(size: Size) -> Ceilings:
    """Read both, for one thread and all, in turns."""
    build(REFERENCE.name)
    library = extension(REFERENCE.name)
    counts = thread_counts()
    readers = {
        **{("bandwidth", n): partial(library.read_bandwidth, size.megabytes, n) for n in counts},
        **{("flops", n): partial(library.peak_flops, n, size.seconds) for n in counts},
    }
    found = {key: Spread.of(readings) for key, readings in in_turn(readers, size.rounds).items()}
    return Ceilings(*({n: found[kind, n] for n in counts} for kind in ("bandwidth", "flops")))
