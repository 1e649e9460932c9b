"""The generator on code that nobody wrote for it: modules of the standard library, with random functions as tasks."""

import ast
import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from course.curriculum import FileSymbols, Task
from course.starter.generate import stubbed
from course.starter.symbols import Function, definitions, is_overload, is_private

STDLIB = Path(sysconfig.get_path("stdlib"))
MODULES = [
    "asyncio/queues.py",
    "asyncio/taskgroups.py",
    "bisect.py",
    "concurrent/futures/thread.py",
    "contextlib.py",
    "functools.py",
    "heapq.py",
    "json/encoder.py",
    "queue.py",
    "shlex.py",
    "textwrap.py",
]
TASK = Task(
    title="T", points=1, hints=("a", "b", "c"), symbols={}, week=1, day=1, number=1, chapter="week1-01-topic.md"
)


def functions(text: str) -> Iterator[tuple[str, str, bool, type]]:
    """Name, source, whether it is a generator, and the kind of every function."""
    lines = text.splitlines(keepends=True)
    for name, node in definitions(ast.parse(text).body):
        if isinstance(node, Function):
            source = "".join(lines[node.lineno - 1 : node.end_lineno])
            yield name, source, is_generator(node), type(node)


def is_generator(node: Function) -> bool:
    """By the compiler's word: the flags of the function's code object (0x20 generator, 0x200 async generator)."""
    bare = type(node)(name="f", args=ast.arguments([], [], None, [], [], None, []), body=node.body, decorator_list=[])
    code = compile(ast.fix_missing_locations(ast.Module([bare], [])), "f", "exec")
    function = next(constant for constant in code.co_consts if hasattr(constant, "co_code"))
    return bool(function.co_flags & 0x220)


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("share", [0.2, 0.8])
def test_other_functions_are_kept_and_kinds_stay(module: str, share: float):
    text = (STDLIB / module).read_text(encoding="utf-8")
    found = list(definitions(ast.parse(text).body))
    names = sorted({name for name, node in found if isinstance(node, Function) and not is_overload(node)})
    tasks = set(random.Random(f"{module} {share}").sample(names, max(1, int(share * len(names)))))
    given = {name for name, _ in found if name not in tasks and "." not in name and not is_private(name)}
    result = stubbed(module, text, FileSymbols(dict.fromkeys(tasks, TASK), given))
    compile(result, module, "exec")
    before, after = list(functions(text)), list(functions(result))
    dropped = {f[0] for f in before} - {f[0] for f in after}
    assert all(any(map(is_private, name.split("."))) for name in dropped)
    assert not dropped & tasks
    assert [f for f in before if f[0] not in tasks | dropped] == [f for f in after if f[0] not in tasks]
    assert [(f[0], *f[2:]) for f in before if f[0] in tasks] == [(f[0], *f[2:]) for f in after if f[0] in tasks]
    assert result.count("raise NotImplementedError(") >= len(tasks)
