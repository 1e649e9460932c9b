"""The course's staircase: the same model, one step faster after the other, in turns, against the memory's bandwidth.

Each step generates behind a context and is read in tokens/s. A token must read every weight once, and with a cache the
keys and values so far; bandwidth divided by these bytes is the limit. (Weights that fit in the processor's caches,
like those of the small model, may be read faster.) The step without a cache also computes the whole prefix each time.
"""

import argparse
import sys
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
from course.timing import Spread, in_turn
from course.traffic import step_traffic
from course.variant import OPS, SOLUTIONS, Variant

if TYPE_CHECKING:
    from benches.common.runners import Ours
    from matplotlib.figure import Figure

HELP = "plain operations, cache, 4 bits, C++, fused, flash attention: tokens/s of each"
DTYPE = "float32"  # of activations, and of the weights that are not packed
STEPS = {
    "plain operations": ("python", "none"),
    "a KV cache": ("python", "dense"),
    "4-bit weights": ("packed", "dense"),
    "C++ products": ("cpu", "dense"),
    "fused primitives": ("fused", "dense"),
    "flash attention": ("flash", "dense"),
    "Metal kernels": ("metal", "dense"),
    "Metal flash": ("metal-flash", "dense"),
}
# The emulator's speed says nothing.
MEASURED = [ops for ops in OPS if sys.platform == "darwin" or not ops.startswith("metal")]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The benchmark's options."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--model", help="a model name or folder, as for `pdm run main`")
    which.add_argument("--shape", choices=list(SHAPES), default="0.6b", help="random weights in this published shape")
    parser.add_argument("--solution", choices=SOLUTIONS, default=SOLUTIONS[0], help="whose code runs")
    parser.add_argument(
        "--ops",
        choices=list(OPS),
        nargs="+",
        default=MEASURED,
        metavar="OPS",
        help=f"only these tables: {', '.join(OPS)}",
    )
    count = number(int, "of at least 1", lambda x: x >= 1, 5)
    parser.add_argument("--context", type=count, default=128, metavar="TOKENS", help="where to measure (default 128)")
    parser.add_argument("--tokens", type=count, default=32, metavar="N", help="tokens per reading, at most")
    limit = number(float, "above 0", lambda x: x > 0, 2)
    late = "end a reading with the token that is done after this time (default 2)"
    parser.add_argument("--seconds", type=limit, default=2.0, metavar="S", help=late)
    parser.add_argument("--rounds", type=count, default=5, metavar="N", help="readings of each step")
    parser.add_argument("--quick", action="store_true", help="a rough look at the memory's bandwidth")


def measure(args: argparse.Namespace) -> tuple[dict[str, object], list[str]]:
    """Numbers and a table, a line for each step."""
    from benches.common.ceilings import FULL, QUICK, measure_ceilings

    plain, packed = folders(args.model, args.shape)
    _check(plain, args)
    bandwidth = measure_ceilings(QUICK if args.quick else FULL).most_bandwidth
    with explained(args.solution):
        runners = _runners(plain, packed, args)
        work = {
            name: partial(runner.decode, args.context, args.tokens, args.seconds) for name, runner in runners.items()
        }
        speeds = {name: Spread.of(readings) for name, readings in in_turn(work, args.rounds).items()}
    steps = []
    for name, runner in runners.items():
        folder = plain if runner.variant.ops == "python" else packed
        steps.append(_step(name, runner, folder, args.context, speeds[name], bandwidth))
    numbers = {"model": plain.name, "solution": args.solution, "context": args.context, "bandwidth": bandwidth}
    return numbers | {"steps": steps}, _table(plain, steps, args.context, bandwidth)


def draw(numbers: dict[str, object]) -> "Figure":
    """A bar for each step."""
    from benches.common.chart import bars

    speeds = {
        step["step"]: Spread(*(step["tokens_per_s"][k] for k in ("median", "min", "max"))) for step in numbers["steps"]
    }
    return bars({f"decode at {numbers['context']} tokens": speeds}, f"tokens/s, {numbers['model']}")


def _check(folder: Path, args: argparse.Namespace) -> None:
    from tiny_llm_ref.model.checkpoint import load_config

    context = load_config(folder).max_position_embeddings
    if args.context + args.tokens >= context:
        raise CourseError(
            f"{args.context} + {args.tokens} tokens do not fit in the model's context of {context}: lower --context"
        )
    found = contents(folder)
    if "python" in args.ops:
        check_memory(folder, found, Variant().format(folder, found, DTYPE))


def _runners(plain: Path, packed: Path, args: argparse.Namespace) -> "dict[str, Ours]":
    """What runs each step; steps with the same table share a model."""
    from benches.common.runners import Ours

    models, runners = {}, {}
    for name, (ops, cache) in STEPS.items():
        if ops in args.ops:
            variant = Variant(args.solution, ops, cache)
            if ops not in models:
                models[ops] = variant.load_plain(plain if ops == "python" else packed, DTYPE)
            runners[name] = Ours(variant, models[ops])
    return runners


def _step(name: str, runner: "Ours", folder: Path, context: int, speed: Spread, bandwidth: float) -> dict[str, object]:
    variant, found = runner.variant, contents(folder)
    cached = 0 if variant.cache == "none" else context
    traffic = step_traffic(runner.qwen3.config, found, variant.format(folder, found, DTYPE), cached)
    return {
        "step": name,
        "ops": variant.ops,
        "cache": variant.cache,
        "bytes_per_token": traffic.bytes,
        "limit": bandwidth / traffic.bytes,
        "tokens_per_s": speed.plain(),
    }


def _table(folder: Path, steps: list[dict], context: int, bandwidth: float) -> list[str]:
    lines = [
        f"{folder.name} at {context} tokens; memory is read at {bandwidth / 1e9:.3g} GB/s",
        f"{'step':17} {'--ops':7} {'--cache':7} {'MB/token':>8} {'limit':>6} {'reached':>7} {'gain':>6}  tokens/s",
    ]
    before = None
    for step in steps:
        speed = step["tokens_per_s"]
        gain = f"{speed['median'] / before:.3g}x" if before else ""
        before = speed["median"]
        lines.append(
            f"{step['step']:17} {step['ops']:7} {step['cache']:7} {step['bytes_per_token'] / 1e6:8.4g} "
            f"{step['limit']:6.4g} {before / step['limit']:7.1%} {gain:>6}  "
            f"{before:.3g} ({speed['min']:.3g} .. {speed['max']:.3g})"
        )
    return lines
