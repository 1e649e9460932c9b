"""`pdm run test`: what it selects, what it refuses, and its exit status."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from terminal import Terminal

from course import cli
from course.commands import test as command
from course.paths import SRC
from course.verdict import watch

SILU = ("--week", "1", "--day", "4", "--task", "2")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(["test", *arguments]) == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    return text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "which week? Use pdm run test --week N [--day D] [--task T]"),
        (["--day", "1"], "which week?"),
        (["--solution", "tiny_llm_ref", "--day", "1"], "which week?"),
        (["--week", "1", "--task", "2"], "--task 2 needs --day"),
        (["--week", "99"], "week 99 does not exist: choose from 1"),
        (["--week", "1", "--day", "99"], "week 1 has no day 99: choose from 1, 2"),
        (["--week", "1", "--day", "1", "--task", "99"], "week 1 day 1 has no task 99: choose from 1, 2"),
    ],
)
def test_refusals_are_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], text: str):
    assert text in refused(capsys, *arguments)


def test_missing_package_names_the_command_that_makes_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(command, "SRC", tmp_path)
    assert "src/tiny_llm does not exist: make it with `pdm run starter`" in refused(capsys, "--week", "1")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "course", "test", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, timeout=100)


@pytest.fixture
def learner(tmp_path: Path) -> Callable[[str], str]:
    """A function that makes a `tiny_llm` whose silu runs `statement` first, and returns the folder to put in a path."""

    def make(statement: str) -> str:
        shutil.copytree(SRC / "tiny_llm_ref", tmp_path / "tiny_llm", ignore=shutil.ignore_patterns("__pycache__"))
        file = tmp_path / "tiny_llm" / "model" / "mlp.py"
        text, line = file.read_text(), "    return x * mx.sigmoid(x)\n"
        assert text.count(line) == 1
        file.write_text(text.replace(line, f"    {statement}\n{line}"))
        return str(tmp_path)

    return make


def test_one_task_of_the_reference_passes_whatever_the_users_pytest_options_are():
    done = run("--solution", "tiny_llm_ref", *SILU, PYTEST_ADDOPTS="-k nothing")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split()[:4] == ["task", "state", "cases", "points"]
    assert "Week 1 Day 4 Task 2" in done.stdout
    assert "Week 1 Day 4 Task 1" not in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    "options", [["-k", "nothing_is_called_so"], ["--collect-only", "-q"], ["--version"]], ids=lambda o: o[0]
)
def test_arguments_after_the_dashes_go_to_pytest_and_a_run_that_grades_nothing_fails(options: list[str]):
    done = run("--solution", "tiny_llm_ref", *SILU, "--", *options)
    assert done.returncode == 5
    assert done.stderr.endswith("nothing was selected and run, so nothing was graded\n")


@pytest.mark.parametrize(
    ("statement", "end"),
    [
        ("__import__('os')._exit(0)", "exit status 0"),
        ("__import__('os').kill(__import__('os').getpid(), 9)", "signal SIGKILL"),
    ],
)
def test_code_that_ends_its_process_has_no_verdict(learner: Callable[[str], str], statement: str, end: str):
    done = run(*SILU, PYTHONPATH=learner(statement))
    assert done.returncode == 2
    assert (
        f"error: your code ended the whole run ({end}) in SiluMatchesFloat64[0] of Week 1 Day 4 Task 2" in done.stderr
    )
    assert done.stderr.count("\n") == 1


def test_exit_status_is_what_the_session_said_not_what_the_process_ends_with(learner: Callable[[str], str]):
    ends_well = "__import__('atexit').register(__import__('os')._exit, 0); x = x + 1"
    done = run(*SILU, PYTHONPATH=learner(ends_well))
    assert done.returncode == 1
    assert "failing" in done.stdout


def test_a_thread_that_never_ends_does_not_keep_the_run(learner: Callable[[str], str]):
    sleeps = "lambda: [__import__('time').sleep(1) for _ in iter(int, 1)]"
    endless = f"__import__('threading').Thread(target={sleeps}).start()"
    done = run(*SILU, PYTHONPATH=learner(endless))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "done" in done.stdout
    assert done.stderr == "all was graded, but a thread of your code goes on for ever: the run was ended\n"


def test_a_terminal_is_passed_on_and_ctrl_c_ends_the_run(learner: Callable[[str], str]):
    path = learner("[0 for _ in iter(int, 1)]")
    program = Terminal([sys.executable, "-m", "course", "test", *SILU], os.environ | {"PYTHONPATH": path})
    try:
        program.wait_for("Week 1 Day 4 Task 2: SiLU")  # a line that only a terminal gets
        time.sleep(0.5)
        program.type("\x03")
        assert program.exit_status() == 130
    finally:
        program.close()
    assert program.output.endswith("stopped by Ctrl-C: nothing was noted down\r\n")
    assert "Traceback" not in program.output
    assert "KeyboardInterrupt" not in program.output


@pytest.mark.parametrize("after", [0.3, 0.6, 1.0, 1.6])
def test_ctrl_c_before_the_first_case_is_one_line(learner: Callable[[str], str], after: float):
    path = learner("[0 for _ in iter(int, 1)]")
    program = Terminal([sys.executable, "-m", "course", "test", *SILU, "--isolate"], os.environ | {"PYTHONPATH": path})
    try:
        time.sleep(after)
        os.write(program.file, b"\x03")
        assert program.exit_status() == 130
    finally:
        program.close()
    assert program.output.count("stopped by Ctrl-C") == 1
    assert "Traceback" not in program.output
    assert "!!!" not in program.output


@pytest.mark.parametrize(("number", "seconds"), [(signal.SIGTERM, 60), (signal.SIGINT, 1)])
def test_signals_to_the_waiting_process_are_told_and_sigterm_ends_the_child(number: signal.Signals, seconds: int):
    before = signal.getsignal(number)
    start = time.monotonic()
    threading.Timer(0.5, os.kill, (os.getpid(), number)).start()
    assert watch([sys.executable, "-c", f"import time; time.sleep({seconds})"]) == -number
    assert time.monotonic() - start < 30
    assert signal.getsignal(number) is before
