"""A small course that is graded from end to end: three tasks of one function each, and submissions of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from conftest import SmallCourse

from course.boundary import choose
from course.curriculum import Curriculum, load
from course.grading.course_file import Course
from course.grading.desk import Desk

STARTER = {
    "__init__.py": '"""Given."""\n',
    "model/__init__.py": '"""Given."""\n',
    "model/basics.py": """
        def first(x):
            raise NotImplementedError("Week 1 Day 1 Task 1: first - see book/src/week1-01-one.md#task-1")

        def linear(x):
            raise NotImplementedError("Week 1 Day 1 Task 1: linear - see book/src/week1-01-one.md#task-1")

        def second(x):
            raise NotImplementedError("Week 1 Day 1 Task 2: second - see book/src/week1-01-one.md#task-2")
        """,
    "model/more.py": """
        def third(x):
            raise NotImplementedError("Week 1 Day 2 Task 1: third - see book/src/week1-02-two.md#task-1")
        """,
}
BASICS = """
    def first(x):
        return x + 1

    linear = first

    def second(x):
        return 2 * x
    """
MORE = """
    def third(x):
        return 3 * x
    """
_CASE = """
    @case(task={task}, params=({{"low": 2}}, {{"low": 1000}}), timeout=2.0)
    class {name}:
        "{function}(x) is {wanted}."

        def inputs(rng, low):
            return int(rng.integers(low, 10**15))

        def observe(solution, inputs):
            return solution.module("model.{module}").{function}(inputs)

        def verify(inputs, values):
            x = inputs
            likely = "  likely mistake: nothing was done to x" if values == x else ""
            assert values == {wanted}, f"got {{values!r}}\\n{{likely}}"
    """
_IMPORT = "from course.case import case\n"


def case(task: int, module: str, function: str, wanted: str) -> str:
    """The source of a graded case."""
    name = function.title()
    return dedent(_CASE.format(task=task, name=name, module=module, function=function, wanted=wanted))


@dataclass(frozen=True)
class Graded:
    """The course with its tests, and a desk for it."""

    small: SmallCourse
    curriculum: Curriculum

    @classmethod
    def of(cls, small: SmallCourse) -> "Graded":
        first = [case(1, "basics", "first", "x + 1"), case(1, "basics", "linear", "x + 1")]
        small.tests(_IMPORT + "".join([*first, case(2, "basics", "second", "2 * x")]), day=1)
        small.tests(_IMPORT + case(1, "more", "third", "3 * x"), day=2)
        return cls(small, load(small.root / "curriculum"))

    def desk(self, course: Course | None = None, seeds: Sequence[int] = (), mode: str | None = None) -> Desk:
        """For the whole course."""
        course = course or Course(self.curriculum, days=self.curriculum.days)
        starter = {name: dedent(text).encode() for name, text in STARTER.items()}
        folders = {"curriculum": self.small.root / "curriculum", "tests": self.small.root / "tests_refsol"}
        return Desk(course, course.days, choose(mode), starter, seeds, **folders)

    def submission(self, name: str = "work", **modules: str) -> Path:
        """A checkout with these modules of `model`."""
        for module, text in modules.items():
            self.small.write(f"submissions/{name}/src/tiny_llm/model/{module}.py", text)
        return self.small.root / "submissions" / name
