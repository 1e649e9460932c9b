"""Load on a server: Poisson arrivals or a closed loop, shared prefixes, and the report of vLLM's serving benchmark.

Without --url it starts `pdm run serve` for the time of the measurement; options after `--` are passed on to it. With
--url any OpenAI-compatible server is measured, such as mlx_lm.server or vLLM.
"""

import argparse
import asyncio
from typing import TYPE_CHECKING

from course.errors import CourseError
from course.options import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HELP = "load on a server: throughput, TTFT, TPOT, ITL, goodput"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The benchmark's options."""
    count = number(int, "of at least 1", lambda x: x >= 1, 8)
    some = number(int, "of at least 0", lambda x: x >= 0, 0)
    rate = number(float, "above 0", lambda x: x > 0, 2.0)
    parser.add_argument("--model", default="tiny", help="model name or folder; its tokenizer makes the prompts")
    parser.add_argument("--url", help="measure this server, such as http://127.0.0.1:8000, instead of one of our own")
    parser.add_argument("--served-name", help="what the server calls the model (default: as --model)")
    parser.add_argument("--requests", type=count, default=64, metavar="N", help="how many in all (default 64)")
    parser.add_argument("--rate", type=rate, metavar="R", help="Poisson arrivals, requests/s (default: all at once)")
    parser.add_argument(
        "--concurrency", type=count, metavar="N", help="at most N at once: a closed loop without --rate"
    )
    parser.add_argument(
        "--input-length", type=count, default=128, metavar="TOKENS", help="of each prompt (default 128)"
    )
    parser.add_argument("--output-length", type=count, default=32, metavar="TOKENS", help="of each answer (default 32)")
    parser.add_argument("--prefix", type=some, default=0, metavar="TOKENS", help="shared beginning of the prompts")
    parser.add_argument("--prefixes", type=count, default=1, metavar="K", help="how many different ones (default 1)")
    parser.add_argument("--seed", type=some, default=0, help="of prompts and arrivals")
    parser.add_argument(
        "--goodput", nargs="+", type=goal, default=[], metavar="NAME:MS", help="limits, such as ttft:500 tpot:50"
    )
    parser.add_argument("options", nargs="*", metavar="-- OPTION", help="more options of `pdm run serve`")


def goal(text: str) -> tuple[str, float]:
    """An argparse `type`: ttft:500."""
    name, _, limit = text.partition(":")
    if name not in ("ttft", "tpot", "e2el"):
        raise argparse.ArgumentTypeError(f"{text!r} is no goal: write ttft:500, tpot:50 or e2el:2000, in ms")
    return name, number(float, "above 0", lambda x: x > 0, 500)(limit)


def measure(args: argparse.Namespace) -> tuple[dict[str, object], list[str]]:
    """The numbers of one run, and a table."""
    from benches.common.load_client import Target, send_all
    from benches.common.load_plan import Plan
    from benches.common.load_report import lines, report
    from benches.common.server import our_server
    from tokenizers import Tokenizer

    from course.models import locate

    if args.prefix >= args.input_length:
        raise CourseError(f"--prefix {args.prefix} must be below --input-length {args.input_length}")
    folder = locate(args.model)
    plan = Plan(
        args.requests,
        args.input_length,
        args.output_length,
        args.rate,
        args.concurrency,
        args.prefix,
        args.prefixes,
        args.seed,
    )
    prompts = plan.prompts(Tokenizer.from_file(str(folder / "tokenizer.json")))
    with our_server(args.model, args.options, args.url) as url:
        target = Target(url, args.served_name or args.model, args.output_length)
        answers = asyncio.run(send_all(target, prompts, plan.arrivals(), args.concurrency))
    numbers = report(answers, dict(args.goodput))
    if not numbers["completed"]:
        raise CourseError(f"all {args.requests} requests failed, the first error is {numbers['errors'][0]}")
    gaps = [[piece - answer.sent for piece in answer.pieces] for answer in answers]
    return {"plan": vars(plan), "results": numbers, "pieces_s": gaps}, lines(numbers)


def draw(numbers: dict[str, object]) -> "Figure":
    """The distributions of TTFT and of the gaps between tokens."""
    import numpy as np
    from matplotlib.figure import Figure

    from course.book.style import LIGHT, settings

    pieces = [np.array(times) * 1e3 for times in numbers["pieces_s"] if times]
    series = {"TTFT": [times[0] for times in pieces], "ITL": np.concatenate([np.diff(times) for times in pieces])}
    with settings(LIGHT):
        figure = Figure(figsize=(7, 3.4), layout="constrained", facecolor=LIGHT.paper)
        panels = figure.subplots(1, 2, sharey=True)
        for axes, (name, values), color in zip(panels, series.items(), LIGHT.series, strict=False):
            axes.ecdf(values, color=color)
            axes.set(xlabel=f"{name}, ms", xlim=(0, None))
        panels[0].set_ylabel("share of all")
        return figure
