"""`pdm run soak`: random tests of the serving engine that run as long as you like."""

import argparse
import signal
import sys

from course.errors import CourseError
from course.options import number
from course.variant import SOLUTIONS

HELP = "test the serving engine at random: `soak serve`, `soak schedules`"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    count = number(int, "of at least 1", lambda x: x >= 1, 1000)
    some = number(int, "of at least 0", lambda x: x >= 0, 0)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="serve | schedules")
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
    schedules.add_argument("--count", type=count, default=10_000, metavar="N", help="how many (default 10000)")
    schedules.add_argument("--first", type=some, default=0, metavar="SEED", help="seed of the first (default 0)")
    schedules.add_argument("--seed", type=some, metavar="SEED", help="run this one alone: how a failure is replayed")
    schedules.add_argument("--solution", choices=SOLUTIONS, default=SOLUTIONS[0], help="whose code runs")


def run(args: argparse.Namespace) -> int:
    """Exit status 0 if nothing was wrong, else 1; 2 for mistakes on the command line."""
    return _schedules(args) if args.kind == "schedules" else _serve(args)


def _schedules(args: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.progress import Progress

    from course.learner import explained
    from course.soak.schedules import ScheduleError, run_schedules

    seeds = range(args.first, args.first + args.count) if args.seed is None else range(args.seed, args.seed + 1)
    console = Console(stderr=True)
    try:
        with explained(args.solution), Progress(console=console, disable=not console.is_terminal) as bar:
            task = bar.add_task("", total=len(seeds))
            counts = run_schedules(args.solution, seeds, lambda: bar.advance(task))
    except ScheduleError as error:
        print(error, file=sys.stderr)
        return 1
    kinds = ("fcfs", "chunked", "mixed", "rows", "paged", "prefix", "normal", "overlap")
    print(
        f"{len(seeds)} schedules: {counts['requests']} requests, {counts['aborts']} aborts, {counts['tokens']} tokens"
    )
    print(", ".join(f"{kind} {counts[kind]}" for kind in kinds))
    print("every token was right, every request ended once, and nothing was left")
    return 0


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
