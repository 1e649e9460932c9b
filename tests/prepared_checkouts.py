"""Checkouts in which the examples of the manual can be run: as a learner, or an instructor, has them at that moment."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from course.curriculum import load
from course.paths import REFERENCE, ROOT, source_file
from course.starter import render

LEFT_OUT = {".git", ".venv", ".course", "build", ".pytest_cache", ".ruff_cache", ".hypothesis", ".github", "tests"}
WRITTEN = {"src", "curriculum"}
"""What commands write in place: copied. Everything else in a checkout of an example is a hard link."""
CHANGING = {"reset", "checkout", "restore", "starter", "update"}
"""Commands whose examples run in a checkout that no other command uses."""
COURSE = """
title = "Serving, one day of it"
[graded]
days = ["1.1"]
"""
ROSTER = """id,name,folder
ada,Ada,ada
ben,Ben,ben
"""
REQUESTS = """{"prompt": "Once upon a time", "max_tokens": 8}
{"messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 8}
"""


class Checkouts:
    """Makes each preparation when it is first asked for, and hands out copies of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, command: str, needs: str) -> Path:
        """A checkout in the state `needs`, which commands that change no file of the learner's share."""
        copy = (
            self._folder / "copies" / f"{command if command in CHANGING else 'shared'}-{needs or 'plain'}" / "checkout"
        )
        if not copy.exists():
            _copied(self._made("work" if needs == "newer" else needs), copy, link=True)
            if needs == "newer":
                (copy / "newer").symlink_to(self._made("newer"))
        return copy

    def _made(self, needs: str) -> Path:
        root = self._folder / (needs or "plain")
        if not root.exists():
            getattr(self, f"_{needs or 'plain'}")(root)
        return root

    def _plain(self, root: Path) -> None:
        _copied(ROOT, root, link=False)
        course(root, "starter", "--force")
        shutil.rmtree(root / ".course", ignore_errors=True)

    def _requests(self, root: Path) -> None:
        _copied(self._made(""), root, link=True)
        (root / "requests.jsonl").write_text(REQUESTS)

    def _work(self, root: Path) -> None:
        _copied(self._made(""), root, link=True)
        solve(root / "src" / "tiny_llm", lambda task: (task.week, task.day) == (1, 1))
        course(root, "test", "--week", "1", "--day", "1")
        path = root / "src" / "tiny_llm" / "model" / "rope.py"
        half = re.sub(r'raise NotImplementedError\(\s*"Week 1 Day 2 Task 1:[^)]*\)', "return None", path.read_text())
        assert half != path.read_text()
        path.write_text(half)

    def _saved(self, root: Path) -> None:
        _copied(self._made("work"), root, link=True)
        course(root, "checkout", "--week", "1", "--day", "2")

    def _newer(self, root: Path) -> None:
        """A later version: a word in a comment of the starter, and a chapter, have changed."""
        _copied(self._made(""), root, link=True)
        for name in ("src/tiny_llm_ref/model/mlp.py", "book/src/preface.md"):
            path = root / name
            text = path.read_text()
            path.unlink()
            path.write_text(text + ("# The end.\n" if name.endswith(".py") else "\nThe end.\n"))
        course(root, "starter", "--force")

    def _submission(self, root: Path) -> None:
        _copied(self._made(""), root, link=True)
        submission(root / "submission", (1, 2, 3))
        shutil.make_archive(str(root / "alice"), "zip", root / "submission")
        (root / "secret").mkdir()
        (root / "secret" / "seeds").write_text(f"{'0123456789abcdef' * 4}\n")

    def _class(self, root: Path) -> None:
        _copied(self._made(""), root, link=True)
        for name, tasks in {"ada": (1, 2, 3), "ben": (1,)}.items():
            submission(root / "submissions" / name, tasks)
        (root / "roster.csv").write_text(ROSTER)
        (root / "course.toml").write_text(COURSE)


def course(root: Path, *words: str, seconds: float = 120.0) -> subprocess.CompletedProcess[str]:
    """Run a command of the checkout `root`, away from the terminal."""
    return subprocess.run(
        [sys.executable, "-m", "course", *words],
        cwd=root,
        env=environment(root),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
    )


def environment(root: Path) -> dict[str, str]:
    """That of a shell in the checkout `root`."""
    left_out = ("PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "COLUMNS")
    kept = {key: value for key, value in os.environ.items() if key not in left_out}
    return kept | {"PYTHONPATH": str(root / "src"), "PWD": str(root)}


def submission(folder: Path, tasks: tuple[int, ...]) -> None:
    """What a student hands in who has solved these tasks of the first day."""
    solve(folder / "tiny_llm", lambda task: (task.week, task.day) == (1, 1) and task.number in tasks)


def solve(package: Path, done) -> None:
    """Write the starter with the reference's bodies for the tasks that are `done`."""
    for name, content in render(load(), REFERENCE, done).items():
        path = source_file(package, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _copied(root: Path, to: Path, link: bool) -> Path:
    """Copy a checkout; with `link`, what no command writes in place is not copied but linked."""
    for entry in root.iterdir():
        if entry.name in LEFT_OUT and not (link and entry.name == ".course"):
            continue
        linked = link and entry.name not in WRITTEN | {".course"}
        if entry.is_dir():
            ignored = shutil.ignore_patterns(*(() if entry.name == ".course" else LEFT_OUT - {"tests"}))
            shutil.copytree(entry, to / entry.name, ignore=ignored, copy_function=os.link if linked else shutil.copy2)
        else:
            to.mkdir(parents=True, exist_ok=True)
            shutil.copy2(entry, to / entry.name)
    return to
