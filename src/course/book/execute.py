"""Runs what a chapter claims: fences marked `run`, with the output that may follow, and traced programs.

It runs them in the repository's root with this Python; `pdm run NAME` in them is the course's own command.
"""

import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from course.book import quizfile
from course.book.library import Library, directives
from course.book.page import Page, fences
from course.errors import CourseError
from course.paths import ROOT, SRC

TIMEOUT = 60.0


@dataclass(frozen=True)
class Snippet:
    """A program, where it stands, and what it must print (None: anything, as long as it exits with 0)."""

    place: str
    language: str
    program: str
    output: str | None
    fails: bool = False


def snippets(library: Library) -> Iterator[Snippet]:
    """All programs of the book that are to be run."""
    for page in library.chapters.values():
        yield from _fences(page)
        for argument, _ in directives(page, "quiz"):
            quiz = quizfile.load(library.src / argument)
            for number, question in enumerate(quiz.questions, 1):
                if isinstance(question, quizfile.Tracing):
                    runs, place = question.answer.does_compile, f"{argument} question {number}"
                    output = question.answer.stdout if runs else None
                    yield Snippet(place, "python", question.prompt.program, output, fails=not runs)


def _fences(page: Page) -> Iterator[Snippet]:
    found = list(fences(page.text))
    for fence, following in zip_longest(found, found[1:]):
        if "run" in fence.marks:
            output = following.body if following and "output" in following.marks else None
            yield Snippet(f"book/src/{page.path}:{fence.line}", fence.language, fence.body, output)


def run(snippet: Snippet) -> str:
    """Run it and return what it printed. Raises CourseError when it takes too long, fails, or prints something else."""
    if snippet.language == "python":
        command = [sys.executable, "-c", snippet.program]
    else:
        command = ["bash", "-euo", "pipefail", "-c", _pdm() + snippet.program]
    code, stdout, stderr = _start(command, snippet.place)
    if (code != 0) != snippet.fails:
        last = (stderr.strip() or "it exits with 0").splitlines()[-1]
        raise CourseError(f"{snippet.place}: exit status {code} ({last}): correct the program or its mark")
    if snippet.output is not None and _lines(stdout) != _lines(snippet.output):
        raise CourseError(f"{snippet.place}: it prints\n{stdout.rstrip()}\nand the chapter says\n{snippet.output}")
    return stdout


def _start(command: list[str], place: str) -> tuple[int, str, str]:
    """Exit status, output and errors; after the time limit the program and all that it started are killed."""
    path = os.pathsep.join(filter(None, [str(SRC), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": path, "COLUMNS": "80"}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, start_new_session=True, **pipes) as process:
        try:
            stdout, stderr = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise CourseError(f"{place}: still running after {TIMEOUT:g} s: make it shorter") from None
    return process.returncode, stdout, stderr


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def _pdm(project: Path = ROOT / "pyproject.toml") -> str:
    """A shell function `pdm` that runs the project's scripts with this Python, so that PDM need not be installed."""
    scripts = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["pdm"]["scripts"]
    cases = "".join(f'{name}) {script} "$@" ;; ' for name, script in scripts.items() if isinstance(script, str))
    return (
        f'python() {{ "{sys.executable}" "$@"; }}\n'
        f'pdm() {{ local name=$2; shift 2; case "$name" in {cases}*) echo "no script $name" >&2; return 2 ;; esac; }}\n'
    )
