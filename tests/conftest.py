"""A small course in a temporary folder, for tests of what grades."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

_REGISTRY = """
week = 1
title = "Sums"
forbidden = ["softmax", "nn", "array.logsumexp", "fast.rms_norm"]
[[day]]
day = 1
title = "One"
chapter = "week1-01-one.md"
hours = 1.0
[[day.task]]
title = "First"
points = 10
hints = ["a", "b", "c"]
[day.task.symbols]
"model/basics.py" = ["first", "linear"]
[[day.task]]
title = "Second"
points = 5
hints = ["a", "b", "c"]
[day.task.symbols]
"model/basics.py" = ["second"]
[[day]]
day = 2
title = "Two"
chapter = "week1-02-two.md"
hours = 1.0
needs = ["1.1"]
forbidden = ["exp"]
[[day.task]]
title = "Third"
points = 20
hints = ["a", "b", "c"]
[day.task.symbols]
"model/more.py" = ["third"]
"""


PACKAGES = ("tiny_llm", "tiny_llm_ref")


def package_modules() -> dict[str, object]:
    """The modules of the course's packages that are imported now."""
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] in PACKAGES}


@pytest.fixture(autouse=True)
def same_package() -> Iterator[None]:
    """A `Solution` imports its package anew. Other tests go on with the one that they have imported."""
    before = package_modules()
    yield
    if any(sys.modules.get(name) is not module for name, module in before.items()):
        for name in package_modules():
            del sys.modules[name]
        sys.modules.update(before)


@dataclass(frozen=True)
class SmallCourse:
    """Two days, three tasks; packages and test files are written as a test needs them."""

    root: Path

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
        return path

    def package(self, name: str = "tiny_llm", **modules: str) -> Path:
        """A package whose `model` holds the given modules."""
        for file in ("__init__", "model/__init__"):
            self.write(f"{name}/{file}.py", "")
        for module, text in modules.items():
            self.write(f"{name}/model/{module}.py", text)
        return self.root / name

    def tests(self, text: str, day: int = 1) -> Path:
        return self.write(f"tests_refsol/week_1/test_day_{day}.py", text)

    @property
    def options(self) -> list[str]:
        return ["--curriculum", str(self.root / "curriculum")]


def _make(root: Path) -> SmallCourse:
    course = SmallCourse(root)
    course.write("curriculum/week1.toml", _REGISTRY)
    return course


@pytest.fixture
def small_course(tmp_path: Path) -> SmallCourse:
    """A course of one's own."""
    return _make(tmp_path)


@pytest.fixture(scope="module")
def make_course(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], SmallCourse]:
    """Courses that the tests of a file share."""
    return lambda: _make(tmp_path_factory.mktemp("course"))
