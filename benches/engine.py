"""Our serving engine beside mlx-lm's batch generator, and with --servers our server beside mlx_lm.server over HTTP.

Each reading: as many requests as --concurrency says arrive together, and all generate to the full length; the number is
generated tokens/s of all together. Both sides run plain float32 weights through the same BLAS route, in turns. With
--prefix the prompts begin alike: our engine and both servers have a prefix cache, mlx-lm's generator has none.
"""

import argparse
import asyncio
import itertools
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from benches.random_checkpoint import random_checkpoint

from course.checkpoints import SHAPES
from course.models import locate
from course.options import number
from course.timing import Spread, in_turn, ratio

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure


HELP = "our serving engine and server beside mlx-lm's"
MLX_SERVER = "import course.route, mlx_lm.server as s; s.main()"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The benchmark's options."""
    count = number(int, "of at least 1", lambda x: x >= 1, 8)
    some = number(int, "of at least 0", lambda x: x >= 0, 0)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--model", help="a model name or folder, as for `pdm run main`")
    which.add_argument("--shape", choices=list(SHAPES), help="random weights in this published shape")
    parser.add_argument("--concurrency", type=count, nargs="+", default=[1, 4, 8, 16, 32], metavar="N", help="at once")
    parser.add_argument(
        "--input-length", type=count, default=64, metavar="TOKENS", help="behind the prefix (default 64)"
    )
    parser.add_argument("--output-length", type=count, default=32, metavar="TOKENS", help="default 32")
    parser.add_argument("--prefix", type=some, default=0, metavar="TOKENS", help="shared beginning of all prompts")
    parser.add_argument("--rounds", type=count, default=3, metavar="N", help="readings of each kind (default 3)")
    parser.add_argument("--servers", action="store_true", help="over HTTP, both servers in processes of their own")


def measure(args: argparse.Namespace) -> tuple[dict[str, object], list[str]]:
    """Numbers, and a table of tokens/s with ratios."""
    import course.route  # noqa: F401 - before mlx.core

    folder = random_checkpoint(args.shape) if args.shape else locate(args.model or "tiny")
    results = {}
    with ExitStack() as stack:
        runs = server_runs(stack, folder, args) if args.servers else engine_runs(folder, args)
        for concurrency in args.concurrency:
            readers = {name: partial(run, concurrency) for name, run in runs.items()}
            results[concurrency] = in_turn(readers, args.rounds)
    where = "over HTTP" if args.servers else "in one process"
    lines = [
        f"{folder.name}, float32, prompts of {args.prefix} shared + {args.input_length} tokens, "
        f"{args.output_length} generated, {where}: tokens/s of all requests together, median (slowest .. fastest)",
        f"{'requests':>8}  {'ours':>24}  {'mlx-lm':>24}  {'ratio':>20}",
    ]
    numbers = []
    for concurrency, found in results.items():
        ours, theirs = Spread.of(found["ours"]), Spread.of(found["mlx-lm"])
        gain = ratio(found["mlx-lm"], found["ours"])
        lines.append(f"{concurrency:>8}  {ours!s:>24}  {theirs!s:>24}  {gain!s:>20}")
        plain = {"ours": ours.plain(), "mlx-lm": theirs.plain(), "ratio": gain.plain()}
        numbers.append({"concurrency": concurrency, **plain})
    return {"folder": folder.name, "servers": args.servers, "prefix": args.prefix, "results": numbers}, lines


def engine_runs(folder: Path, args: argparse.Namespace) -> "dict[str, Callable[[int], float]]":
    """Both engines in this process. Every reading has prompts of its own behind the same prefix."""
    import mlx.core as mx
    from benches.common.engines import MlxLmBatch, OurEngine, draw_prompts

    from course.paths import REFERENCE
    from course.variant import build
    from tiny_llm_ref.serving.assemble import Options, load_batched

    build(REFERENCE.name)
    length = args.prefix + args.input_length
    most = max(args.concurrency)
    options = Options(rows=most, max_len=length + args.output_length + 1)
    sides = [
        OurEngine(load_batched(folder, "dense", mx.float32), options),
        MlxLmBatch(folder, "float32"),
    ]
    prefix = np.random.default_rng(0).integers(0, 2000, args.prefix).tolist()
    seeds = {side.name: itertools.count(1) for side in sides}

    def run(side: OurEngine | MlxLmBatch, concurrency: int) -> float:
        rng = np.random.default_rng([concurrency, next(seeds[side.name])])
        return side.run(draw_prompts(rng, concurrency, length, prefix), args.output_length)

    return {side.name: partial(run, side) for side in sides}


def server_runs(stack: ExitStack, folder: Path, args: argparse.Namespace) -> "dict[str, Callable[[int], float]]":
    """Both servers, for as long as `stack` is open, and a client that sends the same requests to each."""
    from benches.common.float32 import float32_copy
    from benches.common.load_client import Target, send_all
    from benches.common.load_plan import Plan
    from benches.common.load_report import report
    from benches.common.server import free_port, our_server, running
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    plain = stack.enter_context(float32_copy(folder))
    port = free_port()
    command = [sys.executable, "-c", MLX_SERVER, "--model", str(plain), "--port", str(port)]
    urls = {
        "ours": (stack.enter_context(our_server(str(folder), ["--dtype", "float32"])), str(folder)),
        "mlx-lm": (stack.enter_context(running(command, f"http://127.0.0.1:{port}", "/health")), str(plain)),
    }
    seeds = {name: itertools.count(1) for name in urls}

    def run(name: str, concurrency: int) -> float:
        length = args.prefix + args.input_length
        plan = Plan(
            concurrency, length, args.output_length, prefix=args.prefix, seed=1000 * concurrency + next(seeds[name])
        )
        url, model = urls[name]
        answers = asyncio.run(
            send_all(Target(url, model, args.output_length), plan.prompts(tokenizer), plan.arrivals(), None)
        )
        return report(answers, {})["output_tokens_per_s"]

    return {name: partial(run, name) for name in urls}


def draw(numbers: dict[str, object]) -> "Figure":
    """Tokens/s of both sides against the number of requests."""
    from matplotlib.figure import Figure

    from course.book.style import LIGHT, settings

    results = numbers["results"]
    counts = [result["concurrency"] for result in results]
    with settings(LIGHT):
        figure = Figure(figsize=(6, 3.4), layout="constrained", facecolor=LIGHT.paper)
        axes = figure.subplots()
        for name, color in zip(("ours", "mlx-lm"), LIGHT.series, strict=False):
            axes.plot(counts, [result[name]["median"] for result in results], "o-", color=color, label=name)
        axes.set_xscale("log", base=2)
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.set(xlabel="requests at once", ylabel="tokens/s of all together", ylim=(0, None))
        axes.legend()
        return figure
