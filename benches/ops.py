"""Every kernel of Week 2 by itself, against the ceilings of this machine and against MLX's own operators.

C++ kernels: ours on packed weights and MLX's operator on the same weights unpacked in float32 (on Linux its products
run on OpenBLAS), in turns, on all cores. Works run through copies of their matrices that no cache holds together, as
the layers of a model do. "of the limit" is the least time that the roofline allows for ours, divided by its time.
Metal kernels: no times, since the emulator's say nothing about a GPU, but the bytes that their threads ask for (a GPU's
caches serve part of them) against the least.
"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from benches.random_checkpoint import folders

from course.checkpoints import SHAPES, Shape
from course.errors import CourseError
from course.learner import explained
from course.options import number
from course.stub import stub_of
from course.timing import Spread, in_turn, ratio, seconds
from course.variant import SOLUTIONS, Variant, build

if TYPE_CHECKING:
    from benches.common.ceilings import Ceilings
    from benches.common.works import Work
    from matplotlib.figure import Figure

HELP = "each kernel against this machine's ceilings and MLX's own operator"
KINDS = ("products", "attention", "steps", "metal")
# What is asked of the largest matrix-vector product: a share of the read bandwidth, by instruction set; and the aim.
MATVEC_BARS = {"AVX-512": 0.6, "AVX2": 0.4}
MATVEC_AIM = 0.85
TOLERANCE = 1e-4  # between ours and MLX's, relative to the largest number of the result
SMALL = Shape(hidden=128, intermediate=192, heads=4, kv_heads=2, head_dim=64, vocab=512)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The benchmark's options."""
    parser.add_argument("--solution", choices=SOLUTIONS, default=SOLUTIONS[0], help="whose kernels run")
    parser.add_argument(
        "--only",
        choices=KINDS,
        nargs="+",
        default=list(KINDS),
        metavar="KIND",
        help=f"only these kinds of work: {', '.join(KINDS)}",
    )
    parser.add_argument("--shape", choices=list(SHAPES), default="0.6b", help="sizes of this model (default 0.6b)")
    parser.add_argument("--model", help="for the steps of a block: this model instead of random weights")
    count = number(int, "of at least 1", lambda x: x >= 1, 5)
    parser.add_argument("--rows", type=count, nargs="+", default=[1, 128, 512], metavar="N", help="rows of products")
    parser.add_argument("--rounds", type=count, default=7, metavar="N", help="readings of each kind")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it works, not how fast")


def measure(args: argparse.Namespace) -> tuple[dict[str, object], list[str]]:
    """Numbers and a line for each work."""
    from benches.common.ceilings import FULL, QUICK, measure_ceilings

    ceilings = measure_ceilings(QUICK if args.quick else FULL)
    bandwidth, flops = ceilings.most_bandwidth, ceilings.most_flops
    lines = [
        f"memory is read at {bandwidth / 1e9:.3g} GB/s, float32 runs at {flops / 1e9:.3g} GFLOP/s; {_instructions()}"
    ]
    results = []
    with explained(args.solution):
        for work in (work for works in _kinds(args) for work in works()):
            try:
                results.append(_measured(work, ceilings, args.rounds))
                lines.append(_line(results[-1]))
            except Exception as error:
                if not (stub := stub_of(error)):
                    raise
                lines.append(f"{work.kernel:20} {work.name:24} still to be written: {stub.text}")
        metal = _metal(args) if "metal" in args.only else {}
    lines += [_metal_line(name, found) for name, found in metal.items()]
    if not args.quick:
        lines += _verdict(results)
    numbers = {"solution": args.solution, "bandwidth": bandwidth, "flops": flops, "instructions": _instructions()}
    return numbers | {"results": results, "metal": metal}, lines


def draw(numbers: dict[str, object]) -> "Figure":
    """Bars: how much of the roofline's limit each work reaches."""
    from benches.common.chart import bars

    groups: dict[str, dict[str, Spread]] = {}
    for result in numbers["results"]:
        groups.setdefault(result["kernel"], {})[result["work"]] = Spread.again(result["of_limit"])
    if not groups:
        raise CourseError("there is nothing to plot: --only leaves no work that is timed")
    return bars(groups, "share of the limit")


def _kinds(args: argparse.Namespace) -> list[Callable[[], "list[Work]"]]:
    """What makes the works of each kind. They are made one kind after another: the matrices are large."""
    from benches.common.works import attentions, products

    build(args.solution)
    variant = Variant(args.solution, "flash", "dense")
    shape = SMALL if args.quick else SHAPES[args.shape]
    sizes = [(1, 40), (16, 24)] if args.quick else [(1, 128), (1, 1024), (512, 512)]
    copies = 2 if args.quick else 1000
    kinds = {
        "products": partial(products, variant, shape, args.rows, copies),
        "attention": partial(attentions, variant, shape, sizes),
        "steps": partial(_steps, args),
    }
    return [works for kind, works in kinds.items() if kind in args.only]


def _steps(args: argparse.Namespace) -> "list[Work]":
    from benches.common.steps import MlxBlock, block_steps

    _, packed = folders(args.model, args.shape)
    model = Variant(args.solution, "fused").load_plain(packed, "float32")
    block = MlxBlock(model)
    return [work for rows in args.rows[:2] for work in block_steps(model, block, rows)]


def _measured(work: "Work", ceilings: "Ceilings", rounds: int) -> dict[str, object]:
    """One work, checked first: a wrong kernel may be as fast as it likes."""
    from benches.common.works import difference, run

    if (wrong := difference(work)) > TOLERANCE:
        raise CourseError(f"{work.kernel}, {work.name}: differs from MLX by {wrong:.2g}, more than {TOLERANCE:g}")
    sides = {"ours": (work.ours, work.copies[0]), "mlx": (work.mlx, work.copies[1])}
    readers = {who: partial(_seconds, partial(run, *side), side[1]) for who, side in sides.items()}
    times = in_turn(readers, rounds)
    least = max(work.flops / ceilings.most_flops, work.bytes / ceilings.most_bandwidth)
    return {
        "kernel": work.kernel,
        "work": work.name,
        "copies": work.copies,
        "bound": "memory" if work.bytes / ceilings.most_bandwidth == least else "arithmetic",
        "ours_s": Spread.of(times["ours"]).plain(),
        "mlx_s": Spread.of(times["mlx"]).plain(),
        "of_limit": Spread.of([least / t for t in times["ours"]]).plain(),
        "times_mlx": ratio(times["ours"], times["mlx"]).plain(),
    }


def _seconds(work: Callable[[], object], times: int) -> float:
    return seconds(work) / times


def _line(result: dict[str, object]) -> str:
    ours, mlx, share, times = (Spread.again(result[key]) for key in ("ours_s", "mlx_s", "of_limit", "times_mlx"))
    return (
        f"{result['kernel']:20} {result['work']:24} {ours.scaled(1e-3)} ms, MLX {mlx.median * 1e3:.3g} ms, "
        f"{times.median:.3g}x; {share.scaled(0.01)} % of the limit ({result['bound']})"
    )


def _metal(args: argparse.Namespace) -> dict[str, dict[str, float] | str]:
    from benches.common.metal_works import traffic

    return traffic(Variant(args.solution, "metal"))


def _metal_line(name: str, found: dict[str, float] | str) -> str:
    if isinstance(found, str):
        return f"{name:20} still to be written: {found}"
    moved, times = f"{found['moved'] / 1e3:.4g} kB", f"{found['moved'] / found['least']:.3g} times the least"
    return f"{name:20} asks for {moved} of device memory, {times}; {found['bank_conflicts']} bank conflicts"


def _instructions() -> str:
    from course.kernels import extension

    return extension(SOLUTIONS[0]).instruction_set()


def _verdict(results: list[dict[str, object]]) -> list[str]:
    """The bar for the largest matrix-vector product."""
    shares = [(r["of_limit"]["median"], r["work"]) for r in results if r["kernel"] == "4-bit matvec"]
    bars = [bar for name, bar in MATVEC_BARS.items() if _instructions().startswith(name)]
    if not shares or not bars:
        return []
    share, name = next((found for found in shares if found[1].startswith("head")), max(shares))
    must = "meets" if share >= bars[0] else "misses"
    aim = "meets" if share >= MATVEC_AIM else "misses"
    return [f"matvec {name}: {share:.0%} of the bandwidth: {must} {bars[0]:.0%}, {aim} the aim {MATVEC_AIM:.0%}"]
