"""The normal loop and the overlap loop on a real model, in turns: tokens/s of each.

"host" is the share of a normal step that is not spent waiting for results: what overlap could hide at best. On a GPU it
would vanish behind the device's work. Here the device is the processor: its kernels want all cores, and the host takes
one of them away. All requests have the same length, so that all steps but the first are decodes of all of them.
"""

import argparse
import os
import time
from typing import NamedTuple

from course.learner import explained
from course.models import locate
from course.options import number
from course.timing import Spread, in_turn, ratio
from course.variant import OPS, SOLUTIONS, Variant, build

HELP = "normal against overlap scheduling on a real model"
PROMPT = 16  # tokens


class Reading(NamedTuple):
    """Of one run: tokens a second, and the share of the time spent outside `results`."""

    speed: float
    host: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The benchmark's options."""
    count = number(int, "of at least 1", lambda x: x >= 1, 8)
    parser.add_argument("--model", default="tiny", help="a model name or folder, as for `pdm run main`")
    parser.add_argument("--solution", choices=SOLUTIONS, default=SOLUTIONS[0], help="whose engine runs")
    parser.add_argument(
        "--ops",
        choices=[ops for ops in OPS if "metal" not in ops],
        default="flash",
        help="who computes a block's steps",
    )
    parser.add_argument("--concurrency", type=count, nargs="+", default=[1, 4, 8, 16, 32], metavar="N", help="at once")
    parser.add_argument("--tokens", type=count, default=100, metavar="N", help="for each request (default 100)")
    parser.add_argument("--rounds", type=count, default=5, metavar="N", help="readings of each loop (default 5)")


def measure(args: argparse.Namespace) -> tuple[dict[str, object], list[str]]:
    """Numbers and a table, a line for each number of requests."""
    import mlx.core as mx

    lines = [f"{'requests':>8}  {'normal':>28}  {'overlap':>28}  {'overlap / normal':>20}  host"]
    rows = []
    build(args.solution)
    with explained(args.solution):
        package = Variant(args.solution)
        model = package.module("serving.assemble").load_batched(locate(args.model), args.ops, mx.float32)
        for requests in args.concurrency:
            rows.append(row := compare(package, model, requests, args))
            lines.append(
                f"{requests:8}  {Spread.again(row['normal'])!s:>28}  {Spread.again(row['overlap'])!s:>28}  "
                f"{Spread.again(row['ratio'])!s:>20}  {row['host']:.0%}"
            )
    numbers = {"model": args.model, "ops": args.ops, "cores": os.cpu_count(), "tokens": args.tokens, "rows": rows}
    return numbers, lines


def compare(package: Variant, model, requests: int, args: argparse.Namespace) -> dict[str, object]:
    """Both loops with this many requests, in turns."""
    loops = ("normal", "overlap")
    readers = {loop: lambda loop=loop: run(package, model, loop, requests, args.tokens) for loop in loops}
    normal, overlap = in_turn(readers, args.rounds).values()
    speeds = [[reading.speed for reading in readings] for readings in (normal, overlap)]
    return {
        "requests": requests,
        "normal": Spread.of(speeds[0]).plain(),
        "overlap": Spread.of(speeds[1]).plain(),
        "ratio": ratio(*speeds).plain(),
        "host": Spread.of([reading.host for reading in normal]).median,
    }


def run(package: Variant, model, loop: str, requests: int, tokens: int) -> Reading:
    """Generate `tokens` for each of `requests` requests, and time all steps but the first, which runs the prompts."""
    assemble, request = package.module("serving.assemble"), package.module("serving.request")
    engine = assemble.assemble(model, assemble.Options(rows=requests, max_len=PROMPT + tokens, loop=loop))
    engine.runner = timed = Timed(engine.runner)
    for uid in range(requests):
        engine.add(request.Request(uid, [uid + 1] * PROMPT, tokens))
    while timed.launches < 2:
        engine.step()
    start, timed.waited, generated = time.perf_counter(), 0.0, 0
    while engine.busy:
        generated += sum(output.sampled is not None for output in engine.step())
    seconds = time.perf_counter() - start
    return Reading(generated / seconds, 1 - timed.waited / seconds)


class Timed:
    """A runner that counts its launches and the seconds that results were waited for."""

    def __init__(self, runner):
        self.runner = runner
        self.launches, self.waited = 0, 0.0

    def launch(self, batch) -> "TimedPending":
        """Count, and launch."""
        self.launches += 1
        return TimedPending(self, self.runner.launch(batch))


class TimedPending(NamedTuple):
    """A launched batch."""

    timed: Timed
    pending: object

    def results(self) -> list:
        """Wait, and note how long."""
        start = time.perf_counter()
        results = self.pending.results()
        self.timed.waited += time.perf_counter() - start
        return results
