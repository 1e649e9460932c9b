"""An automatic mutation score: small changes to the code of a day's tasks, and the share that the day's tests notice.

The changes are the usual operators: comparisons, arithmetic, constants, and/or, negations, swapped arguments, dropped
keyword arguments. Only code inside the day's functions is changed, and never an error's text. Some changes make an
equal program, so a full score is not the aim; the survivors are what to look at."""

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course.curriculum import Day
from course.paths import REFERENCE, is_extension
from course.scratch import grade, scratch, workers

_COMPARE = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.MatMult: ast.Mult,
}  # fmt: skip

_SYMMETRIC = ("swapaxes", "maximum", "minimum", "add", "multiply")


@dataclass(frozen=True)
class Change:
    """`text` in place of the bytes from `start` to `end` of a file of the package."""

    file: str
    line: int
    start: int
    end: int
    before: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before}  ->  {self.text}"

    def apply(self, package: Path) -> None:
        path = package / self.file
        source = path.read_bytes()
        path.write_bytes(source[: self.start] + self.text.encode() + source[self.end :])


def score_day(day: Day, limit: int, seed: int, jobs: int, *options: str, reference: Path = REFERENCE) -> str:
    """Run the day's tests on `limit` changes (0: on all), and report the share that died, with the survivors."""
    changes = changes_of(day, reference)
    if limit and len(changes) > limit:
        changes = sorted(random.Random(seed).sample(changes, limit), key=lambda change: (change.file, change.start))

    def survives(change: Change) -> bool:
        with scratch(reference) as package:
            change.apply(package)
            return grade(package, [day.tests], "-x", *options).status == 0

    with workers(jobs) as map_:
        survivors = [change for change, alive in zip(changes, map_(survives, changes), strict=True) if alive]
    killed = len(changes) - len(survivors)
    share = f" ({100 * killed / len(changes):.0f} %)" if changes else ""
    return "\n".join([f"{day.label}: {killed} of {len(changes)} killed{share}", *(f"  {s}" for s in survivors)])


def changes_of(day: Day, reference: Path = REFERENCE) -> list[Change]:
    """Every change to the functions that the day's tasks ask for, and to the private helpers these use."""
    names: dict[str, set[str]] = {}
    for task in day.tasks:
        for file, symbols in task.symbols.items():
            names.setdefault(file, set()).update(symbols)
    changes = []
    for file, symbols in names.items():
        if is_extension(file):
            continue  # C++ and Metal have no syntax tree here: their mutants are written by hand
        source = (reference / file).read_bytes()
        for function in _functions(ast.parse(source), symbols):
            changes += _changes(file, source, function)
    return list(dict.fromkeys(changes))


def _functions(tree: ast.Module, symbols: set[str]) -> list[ast.AST]:
    """Definitions of the symbols, and of private functions whose names occur in them."""
    known = dict(_definitions(tree, ""))
    wanted = [node for name, node in known.items() if name in symbols]
    for node in wanted:  # grows while it is walked
        used = {n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") for n in ast.walk(node)}
        for name, helper in known.items():
            last = name.rpartition(".")[2]
            if last in used and last.startswith("_") and not last.endswith("__") and helper not in wanted:
                wanted.append(helper)
    return wanted


def _definitions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield prefix + child.name, child
        if isinstance(child, ast.ClassDef):
            yield from _definitions(child, f"{prefix}{child.name}.")


def _changes(file: str, source: bytes, function: ast.AST) -> Iterator[Change]:
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in _code(function):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        for new in _mutations(node):
            yield Change(file, node.lineno, start, end, ast.unparse(node), f"({ast.unparse(new)})")


def _code(node: ast.AST) -> Iterator[ast.expr]:
    """Expressions that are computed: no annotations, decorators, docstrings, raised errors or formatted strings."""
    if isinstance(node, ast.Raise | ast.JoinedStr):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.expr):
        yield node
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        return
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "ctx", "op", "ops"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _code(child)


def _mutations(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(left, [op], right) if type(op) in _COMPARE:
            yield ast.Compare(left, [_COMPARE[type(op)]()], right)
        case ast.BinOp(left, op, right) if type(op) in _ARITHMETIC:
            yield ast.BinOp(left, _ARITHMETIC[type(op)](), right)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.USub() | ast.Not(), operand):
            yield operand  # the operand itself, where it is a number, is not changed as well: see `_code`
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield ast.Constant(value + 1)
        case ast.IfExp(test, body, other):
            yield ast.IfExp(test, other, body)
        case ast.Call(function, arguments, keywords):
            yield from _call_mutations(function, arguments, keywords)


def _call_mutations(function: ast.expr, arguments: list[ast.expr], keywords: list[ast.keyword]) -> Iterator[ast.expr]:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if len(arguments) >= 2 and name not in _SYMMETRIC and not any(isinstance(a, ast.Starred) for a in arguments[:2]):
        yield ast.Call(function, [arguments[1], arguments[0], *arguments[2:]], keywords)
    for keyword in keywords:
        if keyword.arg:
            yield ast.Call(function, arguments, [k for k in keywords if k is not keyword])
