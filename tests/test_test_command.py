"""`pdm run test`: what it selects, what it refuses, and its exit status."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from course import cli
from course.commands import test as command


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


def test_one_task_of_the_reference_passes_whatever_the_users_pytest_options_are():
    done = run("--solution", "tiny_llm_ref", "--week", "1", "--day", "4", "--task", "2", PYTEST_ADDOPTS="-k nothing")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split()[:4] == ["task", "state", "cases", "points"]
    assert "Week 1 Day 4 Task 2" in done.stdout
    assert "Week 1 Day 4 Task 1" not in done.stdout


def test_arguments_after_the_dashes_go_to_pytest_and_nothing_selected_fails():
    done = run("--solution", "tiny_llm_ref", "--week", "1", "--day", "4", "--", "-k", "nothing_is_called_so")
    assert done.returncode == 5
    assert "nothing was selected" in done.stderr
