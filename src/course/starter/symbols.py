"""The definitions of a module by qualified name, and what the registry says about each."""

import ast
import difflib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from course.curriculum import FileSymbols, Task
from course.errors import CourseError

Function = ast.FunctionDef | ast.AsyncFunctionDef
Done = Callable[[Task], bool]  # whether a task keeps the reference's body
COMPOUND = (ast.If, ast.Try, ast.TryStar, ast.With, ast.For, ast.While)


class Definition(NamedTuple):
    """A function, class or constant; `name` is "function", "Class", "Class.method" or "CONSTANT"."""

    name: str
    node: ast.stmt


def nothing(task: Task) -> bool:
    """No task is done: the untouched starter."""
    return False


def is_private(name: str) -> bool:
    """Whether a name is a helper's: `_name` or `__name`, but not `__name__`, `_name_` or `_`."""
    return name.startswith("_") and not name.endswith("_")


def definitions(body: list[ast.stmt], prefix: str = "") -> Iterator[Definition]:
    """All definitions of a module or class body, also in nested classes and in `if`, `try`, `with` and loops."""
    for node in body:
        if isinstance(node, Function):
            yield Definition(prefix + node.name, node)
        elif isinstance(node, ast.ClassDef):
            yield Definition(prefix + node.name, node)
            yield from definitions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            yield from (Definition(prefix + name, node) for name in assigned_names(node))
        elif isinstance(node, COMPOUND):
            imported = {a.asname or a.name for n in ast.walk(node) if isinstance(n, ast.Import) for a in n.names}
            imported |= {a.asname or a.name for n in ast.walk(node) if isinstance(n, ast.ImportFrom) for a in n.names}
            yield from (d for d in definitions(_inner(node), prefix) if d.name not in imported)


def _inner(node: ast.stmt) -> list[ast.stmt]:
    parts = [node, *getattr(node, "handlers", [])]
    names = ("body", "orelse", "finalbody")
    return [stmt for part in parts for name in names for stmt in getattr(part, name, [])]


def assigned_names(node: ast.Assign | ast.AnnAssign) -> list[str]:
    """Plain names that an assignment binds (`a = b = 1`, `a, b = 1, 2`), not attributes or items."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    stores = (n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return [n.id for n in stores]


def is_overload(node: Function) -> bool:
    names = (d.attr if isinstance(d, ast.Attribute) else getattr(d, "id", "") for d in node.decorator_list)
    return "overload" in names


def has_docstring(node: Function | ast.ClassDef | ast.Module) -> bool:
    return ast.get_docstring(node, clean=False) is not None


def has_body(node: Function) -> bool:
    """Whether a function does anything: a docstring, `pass` and `...` alone do nothing."""
    rest = node.body[1:] if has_docstring(node) else node.body
    idle = (isinstance(n, ast.Pass) or (isinstance(n, ast.Expr) and _is_ellipsis(n.value)) for n in rest)
    return not all(idle)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def listed_under(name: str, listed: FileSymbols) -> tuple[str | None, Task | None]:
    """The nearest listed symbol that covers `name` (itself or a class around it), and its task; given has none."""
    while name:
        if name in listed.tasks or name in listed.given:
            return name, listed.tasks.get(name)
        name = name.rpartition(".")[0]
    return None, None


def stubs(file: str, tree: ast.Module, listed: FileSymbols, done: Done) -> list[tuple[Function, str]]:
    """The functions that the learner is still to write, each with the text its stub raises. Raises CourseError."""
    found, used = [], set()
    for name, node in definitions(tree.body):
        cover, task = listed_under(name, listed)
        if task is None or not isinstance(node, Function) or is_overload(node):
            continue
        inherited = cover != name
        if inherited and (is_private(node.name) or not has_body(node)):
            continue
        used.add(cover)
        if not done(task):
            found.append((node, task.stub(name)))
    for name, task in listed.tasks.items():
        if name not in used and name in {d.name for d in definitions(tree.body)}:
            raise CourseError(f'{file}: "{name}" of {task.label} has no body to write: list it in [day.given] instead')
    return found


def check_found(file: str, tree: ast.Module, listed: FileSymbols) -> None:
    """Every symbol that the registry lists for a file is in it. Raises CourseError."""
    names = {d.name for d in definitions(tree.body)}
    for name in [*listed.tasks, *sorted(listed.given)]:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            guess = f' (did you mean "{near[0]}"?)' if near else ""
            week = f"curriculum/week{listed.tasks[name].week}.toml" if name in listed.tasks else "[day.given]"
            raise CourseError(f'{file}: "{name}" is not in the file{guess}: define it or remove it from {week}')


def check_listed(file: str, tree: ast.Module, listed: FileSymbols) -> None:
    """Every public symbol of a task file is listed. Raises CourseError naming all that are not."""
    everything = [*listed.tasks, *listed.given]
    missing = []
    for name, node in definitions(tree.body):
        if not _must_be_listed(name, node) or listed_under(name, listed)[0]:
            continue
        members_listed = isinstance(node, ast.ClassDef) and any(s.startswith(f"{name}.") for s in everything)
        if not members_listed and name not in missing:
            missing.append(name)
    if missing:
        names = ", ".join(f'"{name}"' for name in missing)
        raise CourseError(
            f"{file}: {names} neither task nor given: list under a task's symbols or in [day.given], or start it with _"
        )


def _must_be_listed(name: str, node: ast.stmt) -> bool:
    *outer, last = name.split(".")
    if any(map(is_private, [*outer, last])):
        return False
    if isinstance(node, Function):
        return has_body(node) and not is_overload(node)
    return isinstance(node, ast.ClassDef) or not (outer or last.startswith("__"))
