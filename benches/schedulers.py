"""Worst-case reservation against preemption, prefill first against mixed batches: the schedulers of Week 3 Day 2.

In virtual time: a step takes --base-ms + --token-us * its tokens, so the numbers are the same on every machine. Parts:
chunk: chats, and a long prompt now and then, by the tokens that a batch takes. starve: one chat while prompts come all
the time. block: one very long prompt among short ones. reserve: max_tokens far above real answers. shrink: a memory
that becomes too small. cost: what a step of the scheduler itself takes, in real time, without a model; the bar is
100 us and 10 us more per request.
"""

import argparse
import importlib
import random
from collections.abc import Callable
from types import ModuleType

from benches.common.replay import GO_ON, Arrival, Run, StepTime, replay

from course.learner import explained
from course.options import number
from course.timing import Spread, seconds
from course.variant import SOLUTIONS

HELP = "chunks, reservation and preemption in virtual time, and what a scheduler's step costs"
KINDS = {"chunked": "ChunkedScheduler", "mixed": "MixedScheduler"}
PAGE = 16
BAR = (100e-6, 10e-6)  # seconds of a step, and of each request in it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The benchmark's options."""
    time = number(float, "of at least 0", lambda x: x >= 0, 10)
    parser.add_argument(
        "--only",
        choices=list(PARTS),
        nargs="+",
        default=list(PARTS),
        metavar="PART",
        help=f"only these parts: {', '.join(PARTS)}",
    )
    parser.add_argument("--solution", choices=SOLUTIONS, default=SOLUTIONS[0], help="whose schedulers run")
    parser.add_argument("--base-ms", type=time, default=10.0, metavar="MS", help="time of a step (default 10)")
    parser.add_argument("--token-us", type=time, default=100.0, metavar="US", help="and of each token (default 100)")


def measure(args: argparse.Namespace) -> tuple[dict[str, object], list[str]]:
    """Numbers and a table for each part."""
    step_time = StepTime(args.base_ms / 1e3, args.token_us / 1e6)
    numbers: dict[str, object] = {"solution": args.solution, "base": step_time.base, "per_token": step_time.per_token}
    lines = [f"a step takes {args.base_ms:g} ms, and {args.token_us:g} us for each token"]
    with explained(args.solution):
        for part in args.only:
            numbers[part], table = PARTS[part](Schedulers(args.solution, step_time))
            lines += ["", *table]
    return numbers, lines


class Schedulers:
    """Makes the schedulers of a solution, and replays arrivals on them."""

    def __init__(self, solution: str, step_time: StepTime):
        self.step_time = step_time
        self.solution = solution

    def module(self, name: str) -> ModuleType:
        """A module of its serving engine."""
        return importlib.import_module(f"{self.solution}.serving.{name}")

    def make(self, kind: str, budget: int, tokens: int, rows: int = 256, **options: int) -> object:
        """One on a memory for so many tokens."""
        memory = self.module("memory").RowMemory(rows, tokens, PAGE, tokens // PAGE)
        return getattr(self.module(kind), KINDS[kind])(memory, budget, **options)

    def replay(self, kind: str, budget: int, tokens: int, arrivals: list[Arrival], **options: int) -> Run:
        """The arrivals on a new scheduler."""
        return replay(self.module("request"), self.make(kind, budget, tokens, **options), arrivals, self.step_time)


Table = tuple[list[dict[str, object]], list[str]]


def chunk(schedulers: Schedulers) -> Table:
    """TTFT of long prompts, and the longest gap of chats, by the budget."""
    arrivals = [Arrival(0.0, 64, 400, 400, "chat") for _ in range(16)]
    arrivals += [Arrival(1.0 + i, 8000, 8, 8, "long") for i in range(8)]
    rows = []
    for budget in (64, 128, 256, 512, 1024, 2048, 4096, 8192):
        for kind in KINDS:
            run = schedulers.replay(kind, budget, 10**6, arrivals)
            times = {"ttft": run.ttft("long"), "gap": run.longest_gap("chat"), "rate": run.tokens_per_second}
            rows.append({"kind": kind, "budget": budget} | times)
    lines = ["16 chats, and a prompt of 8,000 tokens each second: TTFT of the long ones, longest gap of the chats"]
    lines.append(f"{'scheduler':10} {'budget':>6} {'TTFT s':>7} {'gap s':>6} {'tokens/s':>8}")
    lines += [f"{r['kind']:10} {r['budget']:6} {r['ttft']:7.2f} {r['gap']:6.2f} {r['rate']:8.0f}" for r in rows]
    return rows, lines


def starve(schedulers: Schedulers) -> Table:
    """One chat while prompts of 2,000 tokens come, nearly as many as can be computed, or a few more."""
    rows = []
    for every in (0.25, 0.2):
        arrivals = [Arrival(0.0, 64, 500, 500, "chat")]
        arrivals += [Arrival(every * i, 2000, 2, 2, "long") for i in range(1, round(10 / every) + 1)]
        for kind in KINDS:
            run = schedulers.replay(kind, 512, 10**6, arrivals)
            early = sum(time < 10 for time in run.times[0])
            gaps = {"gap": run.longest_gap("chat"), "ttft": run.ttft("long")}
            rows.append({"every": every, "kind": kind, "tokens": early, "times": run.times[0]} | gaps)
    lines = ["one chat, and a prompt of 2,000 tokens every so many seconds, for 10 s; budget 512"]
    lines.append(f"{'every s':>10} {'scheduler':10} {'its tokens':>10} {'longest gap s':>13} {'TTFT of prompts s':>17}")
    for r in rows:
        lines.append(f"{r['every']:10} {r['kind']:10} {r['tokens']:10} {r['gap']:13.2f} {r['ttft']:17.2f}")
    return rows, lines


def block(schedulers: Schedulers) -> Table:
    """One prompt of 100,000 tokens, and short ones behind it."""
    arrivals = [Arrival(0.0, 100_000, 10, 10, "long")]
    arrivals += [Arrival(0.5 * i, 100, 20, 20, "short") for i in range(1, 21)]
    rows = []
    for kind, options in (("chunked", {}), ("mixed", {}), ("mixed", {"max_chunk": 512})):
        run = schedulers.replay(kind, 2048, 10**6, arrivals, **options)
        times = {"short": run.ttft("short"), "long": run.ttft("long")}
        rows.append({"kind": kind, "max_chunk": options.get("max_chunk")} | times)
    lines = ["a prompt of 100,000 tokens, and one of 100 each half second behind it; budget 2,048"]
    lines.append(f"{'scheduler':10} {'max_chunk':>9} {'TTFT of short s':>15} {'of the long one s':>17}")
    for r in rows:
        lines.append(f"{r['kind']:10} {r['max_chunk'] or 'none':>9} {r['short']:15.2f} {r['long']:17.2f}")
    return rows, lines


def reserve(schedulers: Schedulers) -> Table:
    """Answers of 50 to 150 tokens, and max_tokens far above them."""
    rows = []
    for max_tokens in (150, 300, 600, 1200, 2400, 4800):
        draw = random.Random(0)
        arrivals = [Arrival(0.0, draw.randint(100, 300), draw.randint(50, 150), max_tokens) for _ in range(200)]
        for kind in KINDS:
            rows.append({"max_tokens": max_tokens} | _summary(kind, schedulers.replay(kind, 1024, 16384, arrivals)))
    lines = ["200 requests at once, prompts of 100 to 300 tokens, answers of 50 to 150; memory for 16,384 tokens"]
    return rows, lines + _table("max_tokens", rows)


def shrink(schedulers: Schedulers) -> Table:
    """Answers as long as max_tokens, and less and less memory."""
    arrivals = [Arrival(0.0, 4000, 400, 400) for _ in range(32)]
    rows = []
    for tokens in (262144, 65536, 32768, 16384, 8192):
        for kind in KINDS:
            rows.append({"memory": tokens} | _summary(kind, schedulers.replay(kind, 1024, tokens, arrivals)))
    lines = ["32 requests at once, prompts of 4,000 tokens, answers of 400; memory in tokens"]
    return rows, lines + _table("memory", rows)


def _summary(kind: str, run: Run) -> dict[str, object]:
    return {
        "kind": kind,
        "rate": run.tokens_per_second,
        "running": sum(run.running) / len(run.running),
        "ttft": run.ttft(),
        "gap": run.longest_gap(),
        "preemptions": run.preemptions,
        "recomputed": run.recomputed,
    }


def _table(name: str, rows: list[dict[str, object]]) -> list[str]:
    head = f"{name:>10} {'scheduler':10} {'tokens/s':>8} {'running':>7} {'TTFT s':>7} {'longest gap s':>13}"
    lines = [f"{head} {'preempted':>9} {'computed again':>14}"]
    for r in rows:
        times = f"{r['rate']:8.0f} {r['running']:7.1f} {r['ttft']:7.2f} {r['gap']:13.2f}"
        lines.append(f"{r[name]:10} {r['kind']:10} {times} {r['preemptions']:9} {r['recomputed']:14}")
    return lines


def cost(schedulers: Schedulers) -> Table:
    """Real time of `next_batch` and `commit` of a decode step."""
    rows = []
    for kind in KINDS:
        for count in (1, 8, 64, 256):
            limit = BAR[0] + BAR[1] * count
            rows.append(
                {"kind": kind, "requests": count, "limit": limit} | _decode_cost(schedulers, kind, count).plain()
            )
    lines = ["the scheduler's own time for a step that decodes, in us; the bar is 100 + 10 per request"]
    lines.append(f"{'scheduler':10} {'requests':>8} {'us':>22} {'bar':>6}")
    for r in rows:
        lines.append(f"{r['kind']:10} {r['requests']:8} {Spread.again(r).scaled(1e-6)!s:>22} {r['limit'] * 1e6:6.0f}")
    return rows, lines


def _decode_cost(schedulers: Schedulers, kind: str, count: int) -> Spread:
    """With a queue that waits for rows behind the running ones, as on a busy server."""
    requests, steps = schedulers.module("request"), 64
    scheduler = schedulers.make(kind, 10**6, 10**6, rows=count)
    for uid in range(2 * count):
        scheduler.add(requests.Request(uid, [GO_ON] * 64, 4 * steps))

    def step() -> None:
        batch = scheduler.next_batch()
        scheduler.commit(batch, [requests.Sampled(GO_ON)] * len(batch.steps))

    step()  # the prompts
    return Spread.of([seconds(step) for _ in range(steps)])


PARTS: dict[str, Callable[[Schedulers], Table]] = {
    "chunk": chunk,
    "starve": starve,
    "block": block,
    "reserve": reserve,
    "shrink": shrink,
    "cost": cost,
}
