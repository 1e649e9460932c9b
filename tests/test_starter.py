"""The starter generator: bodies become stubs, what only they used is dropped, all other text is kept byte for byte.

Most cases are written as a diff: lines with - are in the reference only, lines with + in the starter only.
`STUB(name)` stands for the raise statement.
"""

import ast
import inspect
import re
import textwrap

import pytest

from course.curriculum import FileSymbols, Task
from course.errors import CourseError
from course.starter.generate import stubbed

HEADER = "# This file is yours to edit. Read book/src/week1-01-topic.md.\n"
TASK = Task(
    title="A task", points=1, hints=("a", "b", "c"), symbols={}, week=1, day=1, number=2, chapter="week1-01-topic.md"
)
STUB = r'raise NotImplementedError("Week 1 Day 1 Task 2: \1 - see book/src/week1-01-topic.md#task-2")'


def stub(text: str) -> str:
    return re.sub(r"STUB\((.*?)\)", STUB, text)


def starter(source: str, tasks: str, given: str = "") -> str:
    """The starter of `source` without its header; `tasks` and `given` hold symbols separated by blanks."""
    text = stubbed("pkg/file.py", source, FileSymbols(dict.fromkeys(tasks.split(), TASK), set(given.split())))
    compile(text, "file.py", "exec")
    assert text.startswith(HEADER)
    return text.removeprefix(HEADER).removeprefix("\n")


def check(diff: str, tasks: str, given: str = "") -> None:
    lines = textwrap.dedent(diff).strip("\n").split("\n")
    reference = "".join(line[1:] + "\n" for line in lines if not line.startswith("+"))
    expected = "".join(stub(line[1:]) + "\n" for line in lines if not line.startswith("-"))
    assert starter(reference, tasks, given) == expected


def test_signature_docstring_and_decorators_stay():
    check(
        '''
         """What the module knows."""

         import functools

         import numpy as np


         @functools.cache
         def area(
             width: float,  # in metres
             height: float = 1.0,
         ) -> np.ndarray:  # square metres
             """The area.

             Raises ValueError for a negative side.
             """
        -    # multiply
        -    result = width * height
        -
        -    return np.array(result)
        -    # the end
        +    STUB(area)
        ''',
        "area",
    )


def test_text_outside_of_tasks_is_kept_byte_for_byte():
    given = (
        'def  given( a,b ):\n  x = {"a":1}  # odd   spacing\n  return   x\n\n\n\n\n# a comment: é ü 漢\nLARGE=1\n\f\n'
    )
    text = starter("def task():\n    return 1\n\n\n" + given, "task", "given LARGE")
    assert text == stub("def task():\n    STUB(task)\n\n\n") + given


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        ("def f(): return 1\n", "def f():\n"),
        ("def f(é='ü'): x = 1; return x  # why\n", "def f(é='ü'):\n"),
        ("def f(\n    a,\n): return a\n", "def f(\n    a,\n):\n"),
        ('def f(): "Doc."\n', 'def f():\n    "Doc."\n'),
        ('def f(): "Doc."; return 1\n', 'def f():\n    "Doc."\n'),
        ('def f():\n    """Doc."""; return 1\n', 'def f():\n    """Doc."""\n'),
        ('def f():\n    """Doc.\n\n    é."""; return 1\n', 'def f():\n    """Doc.\n\n    é."""\n'),
        ('def f():\n    """Doc."""  # noqa: D400\n\n    return 1\n', 'def f():\n    """Doc."""  # noqa: D400\n'),
        ('def f():\n    """Doc."""\n', 'def f():\n    """Doc."""\n'),
        ('def f():\n    """Doc."""', 'def f():\n    """Doc."""\n'),
        ("def f():  # why\n    # how\n\n    # more\n    return 1\n", "def f():  # why\n"),
        ("def f():\n    @cache\n    def g(): ...\n    return g\n", "def f():\n"),
        ("def f():\n    ...\n", "def f():\n"),
    ],
)
def test_where_a_body_begins(source: str, kept: str):
    assert starter(source, "f") == kept + stub("    STUB(f)\n")


def test_a_long_stub_is_wrapped_with_its_text_in_one_piece():
    name = "a_name_that_needs_quite_some_space_on_the_line"
    check(
        f"""
         def {name}():
        -    return 1
        +    raise NotImplementedError(
        +        "Week 1 Day 1 Task 2: {name} - see book/src/week1-01-topic.md#task-2"
        +    )
        """,
        name,
    )


def test_generators_stay_generators():
    source = textwrap.dedent(
        """
        def gen():
            yield from range(3)
        async def agen(x):
            if x:
                y = yield x
        async def coroutine():
            async for x in agen(1):
                await x
        def maker():
            def inner():
                yield 1
            return inner
        def anonymous():
            return lambda: (yield)
        """
    )
    names: dict[str, object] = {}
    exec(starter(source, "gen agen coroutine maker anonymous"), names)
    assert inspect.isgeneratorfunction(names["gen"])
    assert inspect.isasyncgenfunction(names["agen"])
    assert inspect.iscoroutinefunction(names["coroutine"])
    assert not inspect.isgeneratorfunction(names["maker"])
    assert not inspect.isgeneratorfunction(names["anonymous"])
    with pytest.raises(
        NotImplementedError, match=r"^Week 1 Day 1 Task 2: gen - see book/src/week1-01-topic.md#task-2$"
    ):
        next(names["gen"]())


def test_methods_of_nested_classes():
    check(
        """
         class Outer:
             class Inner:
                 SIZE = 4

                 def run(self):
        -            return 1
        +            STUB(Outer.Inner.run)

                 def keep(self):
                     return 2

             async def run(self):
                 return 3
        """,
        "Outer.Inner.run",
        "Outer",
    )


def test_a_property_covers_getter_and_setter():
    check(
        """
         class Box:
             @property
             def size(self) -> int:
        -        return self._size
        +        STUB(Box.size)

             @size.setter
             def size(self, value: int) -> None:
        -        self._size = value
        +        STUB(Box.size)
        """,
        "Box.size",
    )


def test_a_class_as_task_covers_its_methods_but_not_its_data():
    check(
        '''
         from dataclasses import dataclass, field


         @dataclass(frozen=True)
         class Point:
             """A place."""

             x: int = 0
             _y: list = field(default_factory=list)
             LIMIT = 5

             def __post_init__(self):
        -        self._check()
        +        STUB(Point.__post_init__)
        -
        -    def _check(self):
        -        assert self.x < self.LIMIT

             def given(self):
                 return self.x

             @staticmethod
             def origin():
                 """The middle."""
        -        return Point()
        +        STUB(Point.origin)
        ''',
        "Point",
        "Point.given",
    )


def test_overloads_stay_as_they_are():
    check(
        """
         import typing


         @typing.overload
         def first(x: int) -> int: ...
         @typing.overload
         def first(x: str) -> str: ...
         def first(x):
        -    return x
        +    STUB(first)
        """,
        "first",
    )


def test_both_branches_of_a_conditional_definition():
    check(
        """
         import sys

         if sys.platform == "darwin":

             def unit():
        -        return 1
        +        STUB(unit)

         else:

             def unit():
        -        return 2
        +        STUB(unit)
        """,
        "unit",
    )


def test_helpers_that_only_a_solution_needs_are_dropped():
    check(
        '''
         """Doc."""
        -
        -import math
        -
        -_SCALE = 3  # only for _inner
        -"""What the scale means."""

         # Why there is a limit.
         _LIMIT = 4
        -# Why there is a table.
        -_TABLE: dict[str, int] = {}


         def task(x):
        -    return _outer(x)
        +    STUB(task)
        -
        -
        -# About the helper.
        -# More about it.
        -@cache
        -def _outer(x):
        -    return _inner(x, _TABLE) if x else _outer(x - 1)
        -    # the end of the helper
        -
        -
        -class _Steps(list):
        -    def run(self):
        -        return math.pi * _SCALE
        -
        -
        -def _inner(x, table):
        -    return _outer(_Steps())


         # A comment that stands apart stays.

         def given(x):
             return _shared(x) + _LIMIT


         def _shared(x):
             return x
        ''',
        "task",
        "given",
    )


def test_private_methods_and_class_constants_are_dropped():
    check(
        '''
         class Cache:
             """Doc."""
        -
        -    _STEP = 2

             def add(self):
        -        self._grow(self._STEP)
        +        STUB(Cache.add)
        -
        -    def _grow(self, step):
        -        self.__fill(step)
        -
        -    def __fill(self, step):
        -        self.size += step

             def given(self):
                 return self._read()

             def _read(self):
                 return self.size
        -
        -    @staticmethod
        -    def _grow(step):
        -        return step


         class Other:
             pass
        ''',
        "Cache.add",
        "Cache.given Other",
    )


def test_a_class_that_loses_everything_keeps_a_pass():
    check(
        """
         class Empty:
        -    def _only(self):
        -        return 1
        +    pass


         def task():
        -    return Empty()._only()
        +    STUB(task)
        """,
        "task",
        "Empty",
    )


@pytest.mark.parametrize(
    "use",
    [
        "def given(x=_helper): ...",
        "@_helper\ndef given(): ...",
        'def given(x: "_helper"): ...',
        'def given() -> "list[_helper]": ...',
        'class Given:\n    x: "_helper"',
        "class Given(_helper): ...",
        "class Given(metaclass=_helper): ...",
        'X = cast("_helper", 1)',
        'T = TypeVar("T", bound="_helper")',
        '__all__ = ["_helper"]',
        'X = getattr(module, "_helper")',
        "X = f'{_helper}'",
        "def given():\n    global _helper\n    _helper = 1",
        "def given():\n    return lambda: _helper",
        "_helper.name = 1",
        "assert _helper",
    ],
)
def test_a_helper_is_kept_for_any_use_outside_of_tasks(use: str):
    head = "def _helper():\n    return other\n\n\n"
    text = starter(f"{head}{use}\n\n\ndef task():\n    return _helper()\n", "task", "given Given X T")
    assert text == stub(f"{head}{use}\n\n\ndef task():\n    STUB(task)\n")


def test_names_alike_do_not_keep_a_helper():
    check(
        """
         def task():
        -    return _step()
        +    STUB(task)
        -
        -
        -def _step():
        -    return 1


         def given(x):
             x._step = "not _step, another"
             return x.json
        """,
        "task",
        "given",
    )


def test_what_no_body_used_stays():
    """A hook that a base class calls, an import for its side effect, and what they use."""
    check(
        """
         import readline
         import json


         class Handler(Base):
             def task(self):
        -        return 1
        +        STUB(Handler.task)

             def _hook(self):
                 return json.dumps({})
        """,
        "Handler.task",
    )


def test_a_listed_private_symbol_stays():
    check(
        """
         def task():
        -    return _helper() + _Table().get()
        +    STUB(task)


         def _helper():
             return 1


         class _Table:
             def get(self):
        -        return 2
        +        STUB(_Table.get)
        """,
        "task _Table.get",
        "_helper",
    )


def test_imports_are_trimmed():
    check(
        """
         from __future__ import annotations

        -import json
         import os.path
        -from collections import Counter, OrderedDict, defaultdict  # containers
        +from collections import OrderedDict  # containers
         from typing import (
             # only for the solution
             Protocol,
        -    # goes with the name
        -    TypeVar,  # and this
         )
        -from xml.sax import (
        -    handler,
        -)
        -
        -import numpy as np

        -from . import cost, other
        +from . import other
        -from .basics import linear as project
         from ..scale import size


         def task():
        -    return json, Counter, defaultdict, TypeVar, handler, np, cost, project
        +    STUB(task)


         def given(x: "OrderedDict[size, other.X]") -> Protocol:
             return os.path.join(x.json, x.np)
        """,
        "task",
        "given",
    )


def test_a_long_import_that_stays_long_is_wrapped():
    names = [f"a_rather_long_name_{n}" for n in range(6)]
    check(
        f"""
        -from .module import gone, {", ".join(names)}
        +from .module import (
        {"".join(f"+    {name},{chr(10)}        " for name in names)}+)


         def task():
        -    return gone + {" + ".join(names)}
        +    STUB(task)


         X = {" + ".join(names)}
        """,
        "task",
        "X",
    )


def test_typing_only_imports():
    check(
        """
        -from typing import TYPE_CHECKING
        -
        -if TYPE_CHECKING:
        -    from .cache import Cache
        -
        -
         def task():
        -    x: "Cache" = 1
        -    return x
        +    STUB(task)
        """,
        "task",
    )
    check(
        """
         from typing import TYPE_CHECKING

         if TYPE_CHECKING:
        -    from .cache import Cache
             from .model import Model


         def task(x: "Model"):
        -    y: "Cache" = x
        -    return y
        +    STUB(task)
        """,
        "task",
    )


def test_literal_strings_are_no_names():
    check(
        """
        -import json
         from typing import Literal


         def task(kind: Literal["json", "xml"]):
        -    return json
        +    STUB(task)
        """,
        "task",
    )


def test_the_header_names_all_chapters_and_stands_apart_from_an_import():
    later = Task(
        title="A", points=1, hints=("a", "b", "c"), symbols={}, week=2, day=3, number=1, chapter="week2-03-more.md"
    )
    source = "import math\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return math.pi\n"
    text = stubbed("pkg/file.py", source, FileSymbols({"g": later, "f": TASK}, set()))
    first = "# This file is yours to edit. Read book/src/week1-01-topic.md, book/src/week2-03-more.md.\n"
    assert text.startswith(f"{first}\ndef f():")
    assert "Week 2 Day 3 Task 1: g - see book/src/week2-03-more.md#task-1" in text


def test_the_result_is_deterministic_and_final():
    source = "import math\n\n\ndef task():\n    return _a(math.pi)\n\n\ndef _a(x):\n    return x\n"
    once = starter(source, "task")
    assert once == starter(source, "task")
    assert starter(once, "task") == once


@pytest.mark.parametrize(
    ("source", "tasks", "given", "message"),
    [
        ("def task(): return 1\ndef other(): return 1\n", "task", "", '"other" neither task nor given'),
        ("def task(): return 1\nX, Y = 1, 2\n", "task", "Y", '"X" neither task nor given'),
        ("def task(): return 1\nclass A:\n  x = 1\n", "task", "", '"A" neither task nor given'),
        ("class A:\n  def f(self): return 1\n  def __len__(self): return 1\n", "A.f", "", '"A.__len__" neither'),
        ("class A:\n  class B:\n    def f(self): return 1\n  def g(self): return 1\n", "A.g", "", '"A.B", "A.B.f"'),
        ("try:\n  import a\nexcept ImportError:\n  a = b = None\ndef f(): return a\n", "f", "", '"b" neither'),
        ("def task(): return 1\nX = 1\n", "task X", "", '"X" of Week 1 Day 1 Task 2 has no body to write'),
        ("class A:\n  x = 1\n", "A", "", '"A" of Week 1 Day 1 Task 2 has no body to write'),
    ],
)
def test_what_the_registry_must_say(source: str, tasks: str, given: str, message: str):
    with pytest.raises(CourseError, match=f"^pkg/file.py: {re.escape(message)}"):
        starter(source, tasks, given)


def test_what_needs_no_listing():
    source = """
    from typing import Protocol

    __all__ = ["A"]
    __version__ = "1"
    _T = 1


    class A(Protocol):
        size: int = 3

        def empty(self):
            \"\"\"Doc.\"\"\"

        def dots(self): ...
        def __repr__(self): pass
        def _private(self): return 1
        def task(self): return 1


    class _B:
        def any(self): return 1
    """
    assert ast.parse(starter(textwrap.dedent(source).lstrip(), "A.task"))
