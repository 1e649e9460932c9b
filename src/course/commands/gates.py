"""`pdm run gates`: every graded test must be TODO or blocked on a freshly generated starter."""

import argparse
import sys
import tempfile
from pathlib import Path

from course.manual import Example

HELP = "check that the untouched starter passes no graded test"
ABOUT = """
Generates a starter in a scratch folder and runs every graded test on it. Each must end as TODO, or as blocked
by another task: a test that passes would give points for nothing.
"""
EXAMPLES = (Example("pdm run gates", "all weeks", untried="takes minutes"),)
EXITS = ((0, "the starter earns nothing"), (1, "some test passes or fails otherwise; standard error says which"))
SEE_ALSO = ("mutants", "starter", "CONTRIBUTING.md")


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
