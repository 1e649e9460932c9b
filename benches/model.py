"""Our model beside mlx-lm and llama.cpp on the same shape, all with a cache, in turns, in one run.

prefill: a prompt on an empty cache, up to its first token. decode: token after token behind a prompt. Everybody uses
all cores and scores the last position only. Peers: mlx-lm on unpacked weights (beside our kernels on Linux always in
float32, its fastest format there, through the BLAS route; else in --dtype), llama.cpp Q4_0 where --llama-bench or the
variable LLAMA_BENCH names its llama-bench, and, for information, mlx-lm's own 4-bit weights with --as-shipped: a single
reading of a few tokens, it takes a minute.
On a Mac (not verified yet) our Metal kernels run on its GPU, beside mlx-lm on its 4-bit weights.
"""

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benches.random_checkpoint import folders

from course.checkpoints import SHAPES
from course.errors import CourseError
from course.folder import contents
from course.learner import explained
from course.memory import check_memory
from course.options import number
from course.timing import Spread, in_turn, ratio
from course.variant import OPS, SOLUTIONS, Variant

if TYPE_CHECKING:
    from benches.common.runners import Ours
    from matplotlib.figure import Figure

ON_MAC = sys.platform == "darwin"
HELP = "our model beside mlx-lm's and llama.cpp's: prefill and decode"
LLAMA = "llama.cpp Q4_0"
# What is asked of 4-bit kernels, in times of a peer's speed: at least, and aimed at. Set for the shape 0.6b.
BARS = {"decode": {"mlx-lm": (5.0, 5.0), LLAMA: (0.6, 1.0)}, "prefill": {"mlx-lm": (1.5, 1.5), LLAMA: (0.6, 1.0)}}
EQUAL_BAR = (0.9, 1.0)  # and against mlx-lm on weights of the same kind: plain operations, or a Mac's GPU


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The benchmark's options."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--model", help="a model name or folder, as for `pdm run main`")
    which.add_argument(
        "--shape", choices=list(SHAPES), default="0.6b", help="random weights in this published shape (default 0.6b)"
    )
    count = number(int, "of at least 1", lambda x: x >= 1, 5)
    parser.add_argument("--solution", choices=SOLUTIONS, default=SOLUTIONS[0], help="whose code runs")
    table = "the table measured (default %(default)s)"
    parser.add_argument("--ops", choices=list(OPS), default="metal-flash" if ON_MAC else "flash", help=table)
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float32", help="of activations")
    parser.add_argument("--lengths", type=count, nargs="+", default=[128, 512], metavar="TOKENS", help="prompts")
    parser.add_argument("--decode-at", type=count, default=128, metavar="TOKENS", help="context of decode")
    parser.add_argument("--decode-tokens", type=count, default=16, metavar="N", help="tokens per decode reading")
    parser.add_argument("--rounds", type=count, default=5, metavar="N", help="readings of each kind")
    parser.add_argument("--llama-bench", type=Path, metavar="PATH", help="also measure llama.cpp with this program")
    parser.add_argument("--as-shipped", action="store_true", help="also mlx-lm's 4-bit weights, once")


def measure(args: argparse.Namespace) -> tuple[dict[str, object], list[str]]:
    """Numbers, and tables of tokens/s: median (slowest .. fastest), ratios and verdicts."""
    from benches.common.llama import find_program, llama_bench
    from benches.common.runners import MlxLm, Ours

    program = find_program(args.llama_bench)  # before the minutes that weights may take
    folder, packed = folders(args.model, args.shape)
    _check(folder, args)
    threads = _threads()
    kernels = args.ops != "python"
    theirs = "float32" if kernels and not ON_MAC else args.dtype
    peers = [MlxLm(folder, theirs, packed=ON_MAC and kernels)]
    if program:
        peers.append(llama_bench(program, folder, threads))
    with explained(args.solution):
        variant = Variant(args.solution, args.ops, "dense")
        ours = Ours(variant, variant.load_plain(folder if args.ops == "python" else packed, args.dtype))
        runners = [ours, *peers]
        results, lines = [], [f"{folder.name}, {threads} threads, tokens/s: median (slowest .. fastest)"]
        judged = args.model is None and args.shape == "0.6b"
        for kind, length, read in _work(args):
            found = in_turn({runner.name: partial(read, runner) for runner in runners}, args.rounds)
            results.append(_plain(kind, length, found))
            lines += _lines(kind, length, found, args.ops, judged)
    shipped = _as_shipped(folder, args) if args.as_shipped else {}
    lines += [f"for information, {name}: {speed:.3g} tokens/s" for name, speed in shipped.items()]
    numbers = {"model": folder.name, "solution": args.solution, "ops": args.ops, "dtype": args.dtype}
    return numbers | {"threads": threads, "results": results, "as_shipped": shipped}, lines


def draw(numbers: dict[str, object]) -> "Figure":
    """A group of bars for each kind and length."""
    from benches.common.chart import bars

    groups = {
        f"{r['kind']} {r['length']}": {name: Spread.again(plain) for name, plain in r["speeds"].items()}
        for r in numbers["results"]
    }
    return bars(groups, f"tokens/s, {numbers['model']}")


def _check(folder: Path, args: argparse.Namespace) -> None:
    from tiny_llm_ref.model.checkpoint import load_config

    context = load_config(folder).max_position_embeddings
    longest = max(args.decode_at + args.decode_tokens + 1, *args.lengths)
    if longest > context:
        raise CourseError(f"{longest} tokens do not fit in the model's context of {context}: lower --lengths")
    found = contents(folder)
    check_memory(folder, found, Variant(ops="python").format(folder, found, args.dtype))  # for mlx-lm


def _threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _work(args: argparse.Namespace) -> list[tuple[str, int, Callable[["Ours"], float]]]:
    """Kind, length, and how a runner is asked for one reading."""
    prompts = [("prefill", n, lambda runner, n=n: runner.prefill(n)) for n in args.lengths]
    return [*prompts, ("decode", args.decode_at, lambda runner: runner.decode(args.decode_at, args.decode_tokens))]


def _as_shipped(folder: Path, args: argparse.Namespace) -> dict[str, float]:
    from benches.common.runners import MlxLm

    peer = MlxLm(folder, "bfloat16", packed=True)
    return {f"{peer.name} prefill 8": peer.prefill(8), f"{peer.name} decode 2": peer.decode(8, 2)}


def _plain(kind: str, length: int, found: dict[str, list[float]]) -> dict[str, object]:
    ours, *peers = found
    return {
        "kind": kind,
        "length": length,
        "speeds": {name: Spread.of(readings).plain() for name, readings in found.items()},
        "ratios": {name: ratio(found[name], found[ours]).plain() for name in peers},
    }


def _lines(kind: str, length: int, found: dict[str, list[float]], ops: str, judged: bool) -> list[str]:
    ours, *peers = found
    lines = [f"{kind:8} {length:5}  {ours:22} {Spread.of(found[ours])}"]
    for name in peers:
        times = ratio(found[name], found[ours])
        verdict = _verdict(kind, name, ops, times.median) if judged else ""
        lines.append(f"{'':16}{name:22} {Spread.of(found[name])}  ours is {times} times that{verdict}")
    return lines


def _verdict(kind: str, peer: str, ops: str, times: float) -> str:
    family = next(name for name in BARS[kind] if peer.startswith(name))
    equal = family != LLAMA and (ops == "python" or "4-bit" in peer)
    must, aim = EQUAL_BAR if equal else BARS[kind][family]
    if times < must:
        return f": misses {must:g}"
    return f": meets {must:g}" + ("" if must == aim else f", {'meets' if times >= aim else 'misses'} the aim {aim:g}")
