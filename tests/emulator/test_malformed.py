"""Malformed kernels: always an error with file and line, or a normal result; never a crash or a hang of Python."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from emulator.mutate import mutate

from course.emulator.errors import KernelError, Problem
from course.emulator.lint import lint
from course.emulator.translate.translator import read, translate

TESTS = Path(__file__).parents[1]
SECONDS = 5.0  # for one translation, which takes milliseconds


def test_translation_ends_well_or_says_where_it_cannot():
    """Without the compiler, so many more."""
    from emulator.test_fidelity import ACCEPTED, FILE, KERNEL

    sources = [f"{helpers}\n{KERNEL.format('k', body)}" for helpers, body in ACCEPTED.values()]
    for seed in range(400):
        source = f'#line 1 "{FILE}"\n{mutate(sources[seed % len(sources)], seed)}'
        started = time.process_time()
        problems = _problems(source, FILE)
        assert all(problem.line > 0 for problem in problems), f"seed {seed}: {problems}"
        assert time.process_time() - started < SECONDS, f"seed {seed} takes too long"


def _problems(source: str, file: str) -> list[Problem]:
    """What keeps the source from being translated; an error must come with its place."""
    try:
        unit = read(source, frozenset([file]))
        translate(unit)
        return lint(unit)
    except KernelError as error:
        return list(error.problems) or [Problem(str(error), 0, "an error without a place")]


def test_running_ends_well_or_says_where_it_cannot():
    """In a process of its own: a crash is then a failure that names the seed."""
    count = 40
    command = [sys.executable, "-m", "emulator.fuzz_child", "0", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=TESTS)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"{lines[-1:]} {done.stderr[-800:]}"
    assert len(lines) == count
    assert not [line for line in lines if "PLACELESS" in line]
    assert sum(" ran with " in line for line in lines) >= 5, "the mutations leave nothing to run"
    assert sum(" error " in line for line in lines) >= 20


@pytest.mark.parametrize("source", ["", "\n" * 3, "// nothing", "}", "#if 1", "/*", '#include "x.h"', "out[0] = x[0]"])
def test_tiny_bodies(source: str):
    from emulator.fuzz_child import call

    with pytest.raises(KernelError) as caught:
        call("", f"{source}\nout[0] = undeclared;")
    assert caught.value.problems
