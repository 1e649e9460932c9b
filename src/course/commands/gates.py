"""`pdm run gates`: every graded test must be TODO or blocked on a freshly generated starter."""

import argparse
import sys
import tempfile
from pathlib import Path

HELP = "maintainers: check that the untouched starter passes no graded test"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(args: argparse.Namespace) -> int:
    """Exit status 0 if the starter earns nothing."""
    from course.curriculum import load
    from course.gates import starter_problems

    curriculum = load()
    with tempfile.TemporaryDirectory(prefix="tiny-llm-") as folder:
        problems = starter_problems(curriculum, Path(folder))
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print("every graded test is TODO or blocked on the untouched starter")
    return 1 if problems else 0
