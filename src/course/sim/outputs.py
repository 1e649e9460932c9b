"""The files that a run can leave: which were asked for, checked before the run, written after it."""

import argparse
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from course.errors import CourseError

PLOT_HELP = "draw them as SVG into this folder"


def add_plots(parser: argparse.ArgumentParser) -> None:
    """The option for plots."""
    parser.add_argument("--plots", type=Path, metavar="DIR", help=PLOT_HELP)


def check_places(*files: Path | None, plots: Path | None = None) -> None:
    """Raise CourseError where a file cannot be written, before the minutes of a run."""
    for file in filter(None, files):
        if file.is_dir() or not file.parent.is_dir():
            why = f"{file} is a folder: name a file" if file.is_dir() else f"no folder {file.parent}: make it"
            raise CourseError(f"{why}, or write to another place")
    if plots is None:
        return
    if importlib.util.find_spec("matplotlib") is None:
        raise CourseError("matplotlib is not installed, so there are no plots: run `pdm install -G sim`")
    with writing(plots):
        plots.mkdir(parents=True, exist_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError into a CourseError that names the file."""
    try:
        yield
    except OSError as error:
        raise CourseError(f"cannot write {path}: {error.strerror}") from None


def write_json(path: Path, value: object) -> None:
    """Write it. Raises CourseError."""
    with writing(path):
        path.write_text(json.dumps(value, indent=1, allow_nan=False) + "\n", encoding="utf-8")


@contextmanager
def bar(in_all: int | None, noun: str) -> Iterator[Callable[[], None]]:
    """Gives what to call when one more is done: a bar on standard error shows it, if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(noun), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=in_all)
        yield lambda: progress.advance(task)


def show(thing: object) -> None:
    """Print on standard output with `rich`; where that is no terminal, as wide as it takes.

    Raises BrokenPipeError where nobody reads it, which `rich` would end the program for.
    """
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 1000, highlight=False)
    with console.capture() as text:
        console.print(thing)
    sys.stdout.write(text.get())
    sys.stdout.flush()


def say(text: str) -> None:
    """One line about the run itself, on standard error."""
    print(text, file=sys.stderr)
