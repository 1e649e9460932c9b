"""The starter of a whole package: which files, which errors, and that it is clean under ruff; and `pdm run starter`."""

import subprocess
import sys
from pathlib import Path

import pytest

from course import cli
from course.commands import starter as command
from course.curriculum import Curriculum, load
from course.errors import CourseError
from course.paths import ROOT, SRC
from course.starter import generate, render
from course.work.place import Place

REGISTRY = """\
week = 1
title = "T"
[[day]]
day = 1
title = "T"
chapter = "week1-01-topic.md"
hours = 1
[day.given]
"model/basics.py" = ["Table"]
[[day.task]]
title = "T"
points = 1
hints = ["a", "b", "c"]
[day.task.symbols]
"model/basics.py" = ["tasks", "Table.row"]
"""
BASICS = '''\
"""What the module knows."""

import functools
import math
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, overload

from .config import LIMIT, SIZE

if TYPE_CHECKING:
    from .config import Config

_FACTOR = 2

_OTHER = LIMIT


async def tasks(config: "Config") -> AsyncIterator[int]:
    """Doc."""
    for x in _steps(SIZE):
        yield x


@functools.cache
def _steps(size: int) -> Iterator[int]:
    yield from range(math.floor(size * _FACTOR))


class Table:
    """Doc."""

    _step = 1

    def __init__(self, rows: list[int]):
        self.rows = rows

    @overload
    def row(self, n: int) -> int: ...
    @overload
    def row(self, n: str) -> str: ...
    def row(self, n: int | str) -> int | str:
        return self._find(n)

    def _find(self, n: int | str) -> int | str:
        return self._step + _OTHER

    @property
    def size(self) -> int:
        return len(self.rows)
'''
FILES = {
    "__init__.py": '"""The package."""\n',
    "model/__init__.py": '"""The model."""\n',
    "model/basics.py": BASICS,
    "model/config.py": "LIMIT  =  1\nSIZE = 2\n\n\nclass Config:\n    pass\n",
    "model/data.json": '{"a": 1}\n',
    "model/__pycache__/basics.cpython-311.pyc": "built",
    "_ext/_ext.cpython-311-x86_64-linux-gnu.so": "built",
}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    write(tmp_path / "pkg_ref", FILES)
    return tmp_path / "pkg_ref"


@pytest.fixture
def curriculum(tmp_path: Path) -> Curriculum:
    write(tmp_path / "curriculum", {"week1.toml": REGISTRY})
    return load(tmp_path / "curriculum")


def ruff(*arguments: str | Path) -> str:
    command = [sys.executable, "-m", "ruff", *map(str, arguments), "--config", str(ROOT / "pyproject.toml")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30)
    return "" if result.returncode == 0 else result.stdout + result.stderr


def test_files_without_tasks_are_copied_and_built_ones_left_out(curriculum: Curriculum, reference: Path):
    files = render(curriculum, reference)
    assert sorted(files) == [
        "__init__.py",
        "model/__init__.py",
        "model/basics.py",
        "model/config.py",
        "model/data.json",
    ]
    for name in files.keys() - {"model/basics.py"}:
        assert files[name].decode() == FILES[name]


def test_the_starter_of_clean_code_is_clean_under_ruff(curriculum: Curriculum, reference: Path, tmp_path: Path):
    target = tmp_path / "pkg"
    generate(curriculum, reference, target)
    text = (target / "model/basics.py").read_text()
    for gone in ("math", "_steps", "_find", "_FACTOR", "_OTHER", "functools", "SIZE", "LIMIT", "_step ", "\n    _step"):
        assert gone not in text
    for package in (reference, target):
        assert ruff("check", package / "model/basics.py") == ""
        assert ruff("format", "--check", package / "model/basics.py") == ""


def test_the_starter_of_the_course_is_clean_under_ruff(tmp_path: Path):
    generate(load(), SRC / "tiny_llm_ref", tmp_path / "tiny_llm")
    assert ruff("check", tmp_path) == ""
    assert ruff("format", "--check", tmp_path) == ""


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("model/basics.py", "async def tasks", "async def task", '"tasks" is not in the file (did you mean "task"?)'),
        ("model/basics.py", "class Table", "class Tables", '"Table.row" is not in the file'),
        ("model/basics.py", "from .config import L", "from pkg_ref.model.config import L", "make the import relative"),
        ("model/basics.py", "import functools", "import pkg_ref.model", "make the import relative"),
        ("model/basics.py", "config import LIMIT,", "config import _LIMIT,", "private _LIMIT: make it public"),
        ("model/basics.py", "import LIMIT, SIZE", "import *", "star import"),
        ("model/basics.py", "class Table:", "class Table", "is no Python source"),
        ("model/config.py", "LIMIT  =  1", "from .basics import *", "star import"),
        ("model/__init__.py", '"""The model."""', "from .basics import Table", "holds a docstring and nothing else"),
        ("__init__.py", '"""The package."""', "", "holds a docstring and nothing else"),
    ],
)
def test_mistakes_in_the_reference(
    curriculum: Curriculum, reference: Path, tmp_path: Path, file: str, old: str, new: str, message: str
):
    assert old in FILES[file]
    write(reference, {file: FILES[file].replace(old, new)})
    with pytest.raises(CourseError) as error:
        generate(curriculum, reference, tmp_path / "pkg")
    assert str(error.value).startswith(f"pkg_ref/{file}")
    assert message in str(error.value)
    assert not (tmp_path / "pkg").exists()


def test_a_module_may_have_a_private_name(curriculum: Curriculum, reference: Path):
    write(reference, {"model/config.py": FILES["model/config.py"] + "\nfrom .. import _ext\n"})
    assert b"from .. import _ext" in render(curriculum, reference)["model/config.py"]


def test_a_listed_file_must_exist(curriculum: Curriculum, reference: Path):
    (reference / "model/basics.py").unlink()
    with pytest.raises(CourseError, match=r"^pkg_ref/model/basics\.py: .* is missing"):
        render(curriculum, reference)


@pytest.fixture
def target(reference: Path, curriculum: Curriculum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(command, "HERE", Place(tmp_path / "away", tmp_path / "other", reference))
    monkeypatch.setattr("course.curriculum.load", lambda: curriculum)
    return tmp_path / "pkg"


def run(target: Path, *arguments: str) -> int:
    return cli.main(["starter", "--target", str(target), *arguments])


def tree(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


def test_generating_twice_changes_nothing(target: Path, capsys: pytest.CaptureFixture):
    assert run(target) == 0
    before = tree(target)
    assert run(target) == 0
    assert run(target, "--force") == 0
    assert tree(target) == before
    assert capsys.readouterr().out.count("up to date") == 2
    assert not (target.parent / ".course" / "saved").exists()


@pytest.mark.parametrize("name", ["model/basics.py", "model/config.py", "model/own.py"])
def test_work_is_never_overwritten_without_force(target: Path, name: str, capsys: pytest.CaptureFixture):
    run(target)
    write(target, {name: "mine = 1\n"})
    before = tree(target)
    assert run(target) == 2
    error = capsys.readouterr().err
    assert name in error
    assert "--force" in error
    assert tree(target) == before


def test_force_keeps_the_earlier_folder(target: Path, capsys: pytest.CaptureFixture):
    run(target)
    fresh = tree(target)
    write(target, {"model/basics.py": "mine = 1\n", "model/own.py": "x = 2\n"})
    mine = tree(target)
    assert run(target, "--force") == 0
    assert tree(target) == fresh
    (kept,) = (target.parent / ".course" / "saved").glob("*/mine")
    assert tree(kept) == mine
    assert str(kept.parent) in capsys.readouterr().out


def test_missing_files_are_written_without_force(target: Path):
    run(target)
    before = tree(target)
    (target / "model/config.py").unlink()
    assert run(target) == 0
    assert tree(target) == before


def test_built_files_are_no_work(target: Path):
    run(target)
    write(target, {"model/__pycache__/basics.pyc": "built", "_ext.so": "built"})
    assert run(target) == 0
    assert run(target, "--check") == 0


def test_check_lists_all_differences_and_writes_nothing(target: Path, capsys: pytest.CaptureFixture):
    assert run(target, "--check") == 1
    assert not target.exists()
    run(target)
    assert run(target, "--check") == 0
    write(target, {"model/basics.py": "mine = 1\n", "own.py": ""})
    (target / "model/config.py").unlink()
    capsys.readouterr()
    assert run(target, "--check") == 1
    output = capsys.readouterr().out
    assert "model/basics.py differs" in output
    assert "model/config.py is missing" in output
    assert "own.py is not in the reference" in output


@pytest.mark.parametrize("folder", [ROOT, ROOT.parent, SRC, SRC / "tiny_llm_ref", SRC / "tiny_llm_ref" / "model"])
def test_the_course_itself_is_no_target(folder: Path, capsys: pytest.CaptureFixture):
    assert run(folder) == 2
    assert "holds the course itself" in capsys.readouterr().err


def test_a_file_is_no_target(tmp_path: Path):
    write(tmp_path, {"file": ""})
    assert run(tmp_path / "file") == 2
