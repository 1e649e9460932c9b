"""The staircase of one product with a packed matrix: unpacked by array operations, then each C++ kernel of Day 4.

All kernels in turns on one matrix, which fits in the processor's caches, so that arithmetic and not memory decides;
`ops` measures the other case. "scalar", "vector" and "blocked" run on one thread.
"""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from course.checkpoints import SHAPES
from course.learner import explained
from course.options import number
from course.timing import Spread, in_turn, ratio, seconds
from course.variant import SOLUTIONS, Variant, build

if TYPE_CHECKING:
    import mlx.core as mx

HELP = "one product, kernel by kernel: unpacked, scalar, vector, blocked, threads"
SLOW = "scalar"  # what the others are compared with
STEPS = {
    "unpack, then MLX": None,
    "scalar": "scalar",
    "vector": "vector",
    "blocked": "blocked",
    "all threads": "auto",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The benchmark's options."""
    count = number(int, "of at least 1", lambda x: x >= 1, 5)
    parser.add_argument("--solution", choices=SOLUTIONS, default=SOLUTIONS[0], help="whose kernels run")
    parser.add_argument("--shape", choices=list(SHAPES), default="0.6b", help="gate matrix of this published shape")
    parser.add_argument("--rows", type=count, nargs="+", default=[1, 64], metavar="N", help="rows of x (1 and 64)")
    parser.add_argument("--rounds", type=count, default=7, metavar="N", help="readings of each kernel")


def measure(args: argparse.Namespace) -> tuple[dict[str, object], list[str]]:
    """Numbers and a table, a line for each kernel and number of rows."""
    build(args.solution)
    shape = SHAPES[args.shape]
    O, I = shape.intermediate, shape.hidden  # noqa: E741
    results = []
    with explained(args.solution):
        for rows in args.rows:
            results += _staircase(Variant(args.solution, "cpu"), (rows, O, I), args.rounds)
    lines = [f"x (N, {I}) times a packed matrix ({O}, {I}); gain: how many times faster than the scalar kernel"]
    lines.append(f"{'rows N':>6}  {'kernel':16} {'gain':>6}  GFLOP/s")
    lines += [f"{r['rows']:6}  {r['kernel']:16} {r['gain']['median']:5.1f}x  {_shown(r['flops'])}" for r in results]
    return {"solution": args.solution, "matrix": [O, I], "results": results}, lines


def _staircase(variant: Variant, sizes: tuple[int, int, int], rounds: int) -> list[dict[str, object]]:
    rows, O, I = sizes  # noqa: E741
    works = _works(variant, sizes)
    readings = in_turn({name: lambda work=work: seconds(work) for name, work in works.items()}, rounds)
    return [
        {
            "rows": rows,
            "kernel": name,
            "flops": Spread.of(times).per(2.0 * rows * O * I).plain(),
            "gain": ratio(times, readings[SLOW]).plain(),
        }
        for name, times in readings.items()
    ]


def _works(variant: Variant, sizes: tuple[int, int, int]) -> dict[str, Callable[[], None]]:
    """Each kernel at work, on one matrix and one x; those that only repeat another one are left out."""
    import mlx.core as mx
    from benches.common.works import Matrices, random_array

    rows, O, I = sizes  # noqa: E741
    packed = Matrices(variant.module("kernels.quantize").PackedMatrix, O, I, 1).packed[0]
    linear = variant.module("kernels.packed").QuantizedLinear(packed)
    multiply, x = variant.module("kernels.cpu").quantized_matmul, random_array((rows, I))

    def work(kernel: str | None) -> "mx.array":
        return linear(x) if kernel is None else multiply(x, packed, kernel)

    left_out = "blocked" if rows == 1 else ""
    return {name: lambda kernel=kernel: mx.eval(work(kernel)) for name, kernel in STEPS.items() if name != left_out}


def _shown(speed: dict[str, float]) -> str:
    return str(Spread.again(speed).scaled(1e9))
