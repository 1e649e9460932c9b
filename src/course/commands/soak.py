"""`pdm run soak`: random tests of the engine and of the cluster that run as long as you like."""

import argparse
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from course.errors import CourseError
from course.manual import Example
from course.options import number
from course.solutions import add_solution

WORLDS = {
    "discovery": "no instance was seen too long, none without a lease served, no id came twice, no token was lost",
    "connector": "nobody ran what had not arrived, no page was freed under a copy, all were given back, each one once",
}
"""Of `soak cluster`: what holds where no schedule failed, by world. Each is made in course/soak/cluster.py."""

HELP = "test the engine and the cluster at random, as long as you like"
ABOUT = """
Random tests that find what examples do not. `soak serve` puts clients on a real server, who ask, check every
text and leave at any moment. `soak schedules` runs requests and aborts over every scheduler, memory and loop.
`soak cluster` runs crashes, partitions and blocked loops over the parts of Week 4, in virtual time.

A failure names its seed; --seed plays that one again.
"""
EXAMPLES = (
    Example("pdm run soak schedules --count 20", "twenty random schedules of the reference's engine"),
    Example("pdm run soak schedules --seed 7", "one alone, by its seed: how a failure is replayed"),
    Example("pdm run soak cluster --world discovery --count 20", "twenty worlds of crashes and partitions"),
    Example(
        "pdm run soak serve --seconds 3600 --clients 48", "an hour of clients on a real server", untried="takes an hour"
    ),
)
EXITS = (
    (0, "nothing was wrong"),
    (1, "something was wrong; standard error says what, and with which seed"),
    (2, "a mistake; one line on standard error says what to change"),
)
SEE_ALSO = ("serve", "sim", "week3-overview.md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    count = number(int, "of at least 1", lambda x: x >= 1, 1000)
    some = number(int, "of at least 0", lambda x: x >= 0, 0)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND", help="what to test")
    about = "clients of a real server: they ask, check every text, leave at any moment, and at the end nothing is left"
    serve = kinds.add_parser("serve", help=about, description=about)
    time = number(float, "above 0", lambda x: x > 0, 300)
    serve.add_argument("--seconds", type=time, default=300.0, metavar="N", help="how long (default 300)")
    serve.add_argument("--clients", type=count, default=24, metavar="N", help="how many at once (default 24)")
    serve.add_argument("--model", default="tiny", help="as for `serve` (default tiny)")
    serve.add_argument("--seed", type=some, default=0, help="of what the clients do (default 0)")
    serve.add_argument("options", nargs="*", metavar="-- OPTION", help="more options of `pdm run serve`")
    about = "requests and aborts over every scheduler, memory and loop, on a model that is a hash of all it reads"
    schedules = kinds.add_parser("schedules", help=about, description=about)
    about = "crashes, partitions and blocked loops over all parts of the cluster, in virtual time"
    cluster = kinds.add_parser("cluster", help=about, description=about)
    cluster.add_argument("--world", choices=WORLDS, help="only these parts (default: all worlds)")
    for parser in (schedules, cluster):
        parser.add_argument("--count", type=count, default=10_000, metavar="N", help="how many (default 10000)")
        parser.add_argument("--first", type=some, default=0, metavar="SEED", help="seed of the first (default 0)")
        parser.add_argument("--seed", type=some, metavar="SEED", help="run this one alone: how a failure is replayed")
        add_solution(parser, "whose code runs")


def run(args: argparse.Namespace) -> int:
    """Exit status 0 if nothing was wrong, else 1; 2 for mistakes on the command line."""
    from course.soak.schedules import ScheduleError

    try:
        return {"schedules": _schedules, "cluster": _cluster, "serve": _serve}[args.kind](args)
    except ScheduleError as error:
        print(error, file=sys.stderr)
        return 1


def _schedules(args: argparse.Namespace) -> int:
    from course.soak.schedules import run_schedules

    with _bar(args, "") as done:
        counts = run_schedules(args.solution, _seeds(args), done)
    kinds = ("fcfs", "chunked", "mixed", "rows", "paged", "prefix", "normal", "overlap")
    print(
        f"{len(_seeds(args))} schedules: {counts['requests']} requests, {counts['aborts']} aborts, "
        f"{counts['tokens']} tokens"
    )
    print(", ".join(f"{kind} {counts[kind]}" for kind in kinds))
    print("every token was right, every request ended once, and nothing was left")
    return 0


def _cluster(args: argparse.Namespace) -> int:
    from course.soak.cluster import run_worlds

    for world in WORLDS if args.world is None else [args.world]:
        with _bar(args, world) as done:
            counts = run_worlds(args.solution, world, _seeds(args), done)
        told = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        print(f"{world}: {len(_seeds(args))} schedules: {told}")
        print(WORLDS[world])
    return 0


def _seeds(args: argparse.Namespace) -> range:
    return range(args.first, args.first + args.count) if args.seed is None else range(args.seed, args.seed + 1)


@contextmanager
def _bar(args: argparse.Namespace, name: str) -> Iterator[Callable[[], None]]:
    """A progress bar on a terminal, and what to call after each schedule."""
    from rich.console import Console
    from rich.progress import Progress

    from course.learner import explained

    console = Console(stderr=True)
    with explained(args.solution), Progress(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=len(_seeds(args)))
        yield lambda: bar.advance(task)


def _serve(args: argparse.Namespace) -> int:
    import asyncio

    import httpx

    from course.soak.server import ended, server, soak

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the server ends, too
    options = args.options or ("--rows", "12", "--pages", "160", "--max-len", "512")
    with server(args.model, options) as (process, url, log):
        try:
            clients = asyncio.run(soak(url, args.model, process.pid, args.seconds, args.clients, args.seed, print))
        except httpx.HTTPError as error:
            raise CourseError(f"the server does not answer ({type(error).__name__}: {error}): {_said(log)}") from error
        problems = clients.problems + ended(process, log)
    print(f"{sum(clients.counts.values())} requests in {args.seconds:g} s, seed {args.seed}")
    print(", ".join(f"{name} {count}" for name, count in sorted(clients.counts.items())))
    for problem in problems:
        print(f"WRONG: {problem}", file=sys.stderr)
    if not problems:
        print("every text was right, and nothing was left: no request, no page, no lock, no memory")
    return 1 if problems else 0


def _said(log) -> str:
    log.seek(0)
    return log.read().strip()[-1000:] or "it said nothing"
