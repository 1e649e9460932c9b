"""The ceilings of this machine: how fast its memory is read, and how fast it multiplies and adds, in float32.

Both by two witnesses, on one thread and on all: loops of the reference's C++ library, which do nothing else, and
OpenBLAS through NumPy: a dot product of two arrays that no cache holds, and a product of two square matrices.
"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from course.errors import CourseError
from course.timing import Spread, in_turn, seconds

if TYPE_CHECKING:
    from benches.common.ceilings import Size
    from matplotlib.figure import Figure

HELP = "the ceilings of this machine: read bandwidth and FLOP/s"
PACKED = 4 / 8 + 4 / 64  # bytes of a 4-bit weight with its share of a 16-bit scale and bias
# FLOP per byte of weights: 2 for each weight and row.
MARKS = {"decode, float32": 2 / 4, "decode, 4-bit": 2 / PACKED, "prefill of 32, 4-bit": 2 * 32 / PACKED}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The benchmark's options."""
    parser.add_argument("--quick", action="store_true", help="a look of a second, into the caches: shows that it works")


def measure(args: argparse.Namespace) -> tuple[dict[str, object], list[str]]:
    """Numbers and a table: median (least .. most), and the intensity at which the two ceilings meet."""
    from benches.common.ceilings import FULL, QUICK, measure_ceilings

    size = QUICK if args.quick else FULL
    ours, blas = measure_ceilings(size), _openblas(size)
    lines, numbers = ["median (least .. most)"], {}
    for kind, unit in (("bandwidth", "GB/s"), ("flops", "GFLOP/s")):
        for threads, spread in getattr(ours, kind).items():
            pair = {"C++": spread, "OpenBLAS": blas[kind, threads]}
            numbers[f"{kind}, {threads}"] = {who: one.plain() for who, one in pair.items()}
            said = ", ".join(f"{who} {one.scaled(1e9)} {unit}" for who, one in pair.items())
            lines.append(f"{kind:9} {threads} thread{'s' if threads > 1 else ''}: {said}")
    ridge = ours.most_flops / ours.most_bandwidth
    lines.append(f"the ceilings meet at {ridge:.3g} FLOP per byte: below it memory decides, above it arithmetic")
    lines.append(
        f"so at {ridge * PACKED / 2:.3g} rows for 4-bit weights in groups of 64, {ridge * 4 / 2:.3g} for float32"
    )
    summary = {"bandwidth": ours.most_bandwidth, "flops": ours.most_flops, "ridge": ridge, "quick": args.quick}
    return summary | {"readings": numbers}, lines


def draw(numbers: dict[str, object]) -> "Figure":
    """The roofline, and where products with one row and with many stand under it."""
    from benches.common.chart import roofline

    return roofline(numbers["bandwidth"], numbers["flops"], MARKS)


def _openblas(size: "Size") -> dict[tuple[str, int], Spread]:
    from benches.common.ceilings import thread_counts

    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise CourseError("threadpoolctl is not installed: run `pdm install -G dev`") from None

    def limited(threads: int, amount: float, work: Callable[[], object]) -> float:
        with threadpool_limits(threads):
            return amount / seconds(work)

    length = size.megabytes * 1_000_000 // 8
    x, y = np.ones(length, np.float32), np.ones(length, np.float32)
    side = max(256, int((size.seconds * 5e10 / 2) ** (1 / 3)))
    a = np.ones((side, side), np.float32)
    works = {"bandwidth": (8.0 * length, lambda: x @ y), "flops": (2.0 * side**3, lambda: a @ a)}
    readers = {(kind, n): partial(limited, n, *work) for kind, work in works.items() for n in thread_counts()}
    return {key: Spread.of(readings) for key, readings in in_turn(readers, size.rounds).items()}
