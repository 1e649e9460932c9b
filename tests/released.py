"""A class's repository for tests, and what runs in it."""

import os
import subprocess
import sys
from pathlib import Path

from course import cli

COURSE = """title = "Serving, spring"
extra_files = ["model/mine.py"]
[graded]
weeks = [1]
[points]
"1.1.1" = 42
"1.2" = 10
"""


def make_released(folder: Path) -> Path:
    """A repository with the first week, in a folder with a space, as `course.toml` beside it says."""
    (folder / "course.toml").write_text(COURSE)
    target = folder / "spring 2027"
    assert cli.main(["release", "student", str(target), "--course", str(folder / "course.toml")]) == 0
    return target


def learner(folder: Path, *command: str, status: int = 0) -> str:
    """Run a command of that repository, and return all that it says."""
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "COLUMNS": "100", "NO_COLOR": "1"}
    line = [sys.executable, "-m", "course", *command]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(line, cwd=folder, env=environment, text=True, timeout=120, **pipes)
    assert done.returncode == status, done.stdout
    return done.stdout


def git(folder: Path, *command: str) -> str:
    """What git says in that repository, also where the tests are started by a git hook."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(["git", *command], cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout


def files_of(folder: Path) -> set[str]:
    """The names of all files but git's."""
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and ".git" not in p.parts}
