"""`pdm run batch`: answer a file of requests with as many at once as the engine can run."""

import argparse
import sys
from pathlib import Path

from course.manual import Example
from course.served_options import add_options

HELP = "answer a file of requests"
ABOUT = """
Answers a file of requests with as many at once as the engine can run. A line is an OpenAI batch request, or
simply {"prompt": ...} or {"messages": [...]} with any other field of a request.

Answers are written as they come, in OpenAI's batch format. A run that was stopped goes on where it was: lines
with an answer in the output file are not asked again, lines that failed are.
"""
EXAMPLES = (
    Example("pdm run batch requests.jsonl", "answers in requests.out.jsonl", needs="requests"),
    Example(
        "pdm run batch requests.jsonl --out answers.jsonl --rows 4 --max-len 256",
        "four at a time, none longer than 256 tokens",
        needs="requests",
    ),
)
EXITS = (
    (0, "all lines were answered"),
    (1, "some lines could not be answered; standard error says why"),
    (2, "a mistake; one line on standard error says what to change"),
    (130, "ended by Ctrl-C; the same command goes on"),
)
FILES = (("FILE.out.jsonl", "the answers, one a line; or what --out names"),)
SEE_ALSO = ("serve", "main")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("file", type=Path, metavar="FILE.jsonl", help="one request a line")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the answers (default: FILE.out.jsonl)")
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Exit status 0 where all lines were answered, 1 where some could not be, 130 after Ctrl-C, 2 for mistakes."""
    from course.worker import leave

    leave(_run(args))


def _run(args: argparse.Namespace) -> int:
    import asyncio
    import faulthandler
    import logging
    import os

    from course.batch_file import Results, read_lines
    from course.batch_run import run_batch
    from course.errors import CourseError
    from course.learner import explained
    from course.models import locate
    from course.served import Served

    faulthandler.enable()  # a kernel in C++ that crashes would else end the program without a word
    logging.disable(logging.CRITICAL)  # what goes wrong with a line is told with its number
    total = sum(1 for _ in read_lines(args.file, args.model))
    out = args.out or args.file.with_suffix(".out.jsonl")
    if os.path.exists(out) and os.path.samefile(out, args.file):
        raise CourseError(f"--out {out} is the file of the requests: choose another")
    served = Served.chosen(args, locate(args.model))
    results = Results(out)
    served.prepare()
    progress = Progress(total, len(results.done))
    try:
        with explained(args.solution), progress:
            asyncio.run(run_batch(served, read_lines(args.file, args.model), results, progress.done))
    except KeyboardInterrupt:
        print(f"stopped: run the same command again to go on ({out} has what was answered)", file=sys.stderr)
        return 130
    finally:
        results.close()
    print(progress.summary(out))
    return 1 if progress.failed else 0


class Progress:
    """A bar on standard error, and the lines that failed. kept: answers of an earlier run."""

    def __init__(self, total: int, kept: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self.kept, self.answered, self.failed, self.tokens = kept, 0, 0, 0
        self.console = Console(stderr=True, soft_wrap=True)
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
        self.bar = Bar(*columns, console=self.console, disable=not self.console.is_terminal)
        self.task = self.bar.add_task("", total=total, completed=kept, rate="")

    def __enter__(self) -> "Progress":
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    @property
    def rate(self) -> float:
        """Tokens of answers per second, so far."""
        return self.tokens / max(self.bar.tasks[0].elapsed or 0.0, 1e-9)

    def done(self, line: object, wrong: str | None, tokens: int) -> None:
        """A line is done; it failed where something was wrong."""
        self.tokens += tokens
        self.answered += wrong is None
        if wrong is not None:
            self.failed += 1
            self.console.print(f"line {line.number}: {wrong}", markup=False, highlight=False)
        self.bar.update(self.task, advance=1, rate=f"{self.rate:.0f} tokens/s")

    def summary(self, out: Path) -> str:
        """One line at the end."""
        before = f", {self.kept} were there before" if self.kept else ""
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{out}: {self.answered} answers{before}{failed}; {self.tokens} tokens, {self.rate:.0f} tokens/s"
