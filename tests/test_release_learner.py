"""What a learner runs works in a class's repository, and what needs the reference says that there is none."""

import re
import shutil
import sys
from pathlib import Path

import pytest
from released import learner, make_released

from course.book.page import Page
from course.book.without_reference import adapted
from course.paths import ROOT


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_released(tmp_path_factory.mktemp("class"))


@pytest.fixture
def copy(released: Path, tmp_path: Path) -> Path:
    """One to write in."""
    return Path(shutil.copytree(released, tmp_path / "a copy", symlinks=True))


def test_the_first_day_is_red_and_to_do(copy: Path):
    said = learner(copy, "test", "--week", "1", "--day", "1", status=1)
    assert "to do" in said
    assert "0/42" in said
    assert "write  src/tiny_llm/model/basics.py" in said


def test_what_a_learner_runs_works(copy: Path):
    assert "0/42" in learner(copy, "status")
    assert "nudge" in learner(copy, "hint", "--week", "1", "--day", "1", "--task", "1")
    file = copy / "src/tiny_llm/model/basics.py"
    untouched = file.read_bytes()
    file.write_bytes(untouched + b"\n\ndef mine():\n    return 1\n")
    learner(copy, "starter", "--force")
    assert file.read_bytes() == untouched
    learner(copy, "restore", "latest")
    assert b"mine" in file.read_bytes()
    assert "is still to be written" in learner(copy, "main", "--prompt", "hello", status=2)


@pytest.mark.parametrize(
    "command",
    [
        ("checkout", "--week", "1", "--day", "2"),
        ("solution", "--week", "1", "--day", "1", "--task", "1"),
        ("compare", "--week", "1", "--day", "1", "--task", "1"),
        ("main", "--solution", "tiny_llm_ref", "--prompt", "hello"),
        ("test", "--solution", "tiny_llm_ref", "--week", "1"),
        ("sim", "run", "--solution", "tiny_llm_ref"),
    ],
)
def test_what_needs_the_reference_says_that_there_is_none(released: Path, command: tuple[str, ...]):
    said = learner(released, *command, status=2)
    assert "this copy of the course has no reference solution" in said
    assert said.count("\n") == 1


def test_every_command_has_its_help(released: Path):
    said = learner(released, "bench", "--help")
    assert "serve" in said
    overview = learner(released, "--help")
    assert "release" not in overview
    assert "hint" in overview


def test_the_book_builds_there_and_has_no_dead_links(copy: Path):
    if not any(path.exists() for path in (Path(sys.executable).parent / "mdbook", Path("/usr/bin/mdbook"))):
        pytest.skip("mdbook is not installed")
    learner(copy, "book", "--out", str(copy / "built"))
    pages = {path.name: path.read_text() for path in (copy / "built").glob("*.html")}
    for name, page in pages.items():
        assert page.count("This copy of the course has no reference solution") <= 1 or name == "print.html"
    assert "This copy of the course has no reference solution" in pages["week1-01-attention.html"]
    links = {link for page in pages.values() for link in re.findall(r'href="(week[^"#]*)', page)}
    assert "week1-01-attention.html" in links
    assert links <= pages.keys()


def test_given_code_in_chapters_is_the_starters(copy: Path):
    """Chapters show code of the reference by anchors: these are in the untouched starter, whatever the learner did."""
    text = "# Title\n\n```python\n{{#include ../../src/tiny_llm_ref/model/config.py:config}}\n```\n"
    page = adapted(Page("week1-05-model.md", text), ROOT / "book/src")
    assert "{{#include ../../.course/starter/tiny_llm/model/config.py:config}}" in page.text


def test_links_to_missing_chapters_become_text(tmp_path: Path):
    for name in ("week1-01-a.md", "setup.md"):
        (tmp_path / name).write_text("")
    text = "# T\n\n[One](week1-01-a.md#x), [two](week2-01-b.md#task-1), `[three](week2-01-b.md)`, [four](setup.md)\n"
    page = adapted(Page("setup.md", text), tmp_path)
    assert page.text == text.replace("[two](week2-01-b.md#task-1)", "two")
