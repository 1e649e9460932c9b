"""Drops the private helpers and imports that only removed bodies used; everything else stays.

A helper or import goes when it is reachable in the reference and no longer reachable in the starter. Reachable is
what public code uses, what that uses, and so on. So an import for its side effect and a hook that only a base class
calls stay.
"""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from course.curriculum import FileSymbols
from course.starter.source import LINE_LENGTH, Edit, apply, column, last_line, split_lines, stands_alone, with_comments
from course.starter.symbols import Function, assigned_names, is_private
from course.starter.uses import uses

Import = ast.Import | ast.ImportFrom


class Unit(NamedTuple):
    """A statement that is needed only if one of `binds` is; with no `binds` it is needed always."""

    node: ast.stmt
    binds: frozenset[str]
    uses: set[str]


def prune(reference: str, text: str, listed: FileSymbols) -> str:
    """The stubbed `text` of a file without what only the removed bodies of `reference` used."""
    units = list(_units(ast.parse(reference).body, listed, ""))
    public = _reachable([unit for unit in units if not unit.binds], units)
    before = _reachable(_roots(units, public), units)
    while True:
        tree = ast.parse(text)
        units = list(_units(tree.body, listed, ""))
        pruner = _Pruner(split_lines(text), listed, before, _reachable(_roots(units, public), units))
        edits = list(pruner.edits(tree.body, ""))
        if not edits:
            return text
        text = apply(text, edits)


def _roots(units: list[Unit], public: set[str]) -> list[Unit]:
    """What is needed whatever the bodies hold: public units, and private ones that no body of the reference used."""
    return [unit for unit in units if not unit.binds & public]


def _reachable(roots: list[Unit], units: list[Unit]) -> set[str]:
    """The names used by the roots, by the units that these names stand for, and so on."""
    reached: set[str] = set()
    live, waiting = roots, units
    while live:
        reached.update(*(unit.uses for unit in live))
        live = [unit for unit in waiting if unit.binds & reached]
        waiting = [unit for unit in waiting if not unit.binds & reached]
    return reached


def _units(body: list[ast.stmt], listed: FileSymbols, prefix: str) -> Iterator[Unit]:
    for node in body:
        if isinstance(node, Import):
            continue
        if binds := _binds(node, listed, prefix):
            yield Unit(node, binds, uses(node))
        elif isinstance(node, ast.ClassDef):
            yield Unit(node, frozenset(), uses(*node.decorator_list, *node.bases, *node.keywords))
            yield from _units(node.body, listed, f"{prefix}{node.name}.")
        elif is_typing_block(node):
            yield Unit(node, frozenset(), uses(node.test))
            yield from _units(node.body, listed, prefix)
        else:
            yield Unit(node, frozenset(), uses(node))


def _binds(node: ast.stmt, listed: FileSymbols, prefix: str) -> frozenset[str]:
    """The keys under which a private helper can be used; empty for what is public or listed."""
    if isinstance(node, Function | ast.ClassDef):
        names = [node.name]
    elif isinstance(node, ast.Assign) or (isinstance(node, ast.AnnAssign) and not prefix):
        plain = all(isinstance(t, ast.Name) for t in getattr(node, "targets", [getattr(node, "target", None)]))
        names = assigned_names(node) if plain else []
    else:
        names = []
    full = [prefix + name for name in names]
    everything = [*listed.tasks, *listed.given]
    if not names or not all(map(is_private, names)):
        return frozenset()
    if any(symbol == name or symbol.startswith(f"{name}.") for symbol in everything for name in full):
        return frozenset()
    return frozenset(names) | (frozenset(f".{name}" for name in names) if prefix else frozenset())


def is_typing_block(node: ast.stmt) -> bool:
    if not isinstance(node, ast.If) or node.orelse:
        return False
    return ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


class _Pruner:
    """The removals in one text, given the names `before` (reference) and `after` (this text) that are reachable."""

    def __init__(self, lines: list[str], listed: FileSymbols, before: set[str], after: set[str]) -> None:
        self.lines, self.listed, self.before, self.after = lines, listed, before, after

    def edits(self, body: list[ast.stmt], prefix: str) -> Iterator[Edit]:
        for node, following in zip(body, [*body[1:], None], strict=True):
            binds = _binds(node, self.listed, prefix)
            if isinstance(node, ast.ClassDef) and not binds:
                yield from self._class_edits(node, list(self.edits(node.body, f"{prefix}{node.name}.")))
            elif is_typing_block(node):
                inner = list(self.edits(node.body, prefix))
                yield from [self._removal(node)] if _empties(node, inner) else inner
            elif not stands_alone(self.lines, node):
                continue
            elif isinstance(node, Import):
                yield from self._import_edits(node)
            elif binds & self.before and not binds & self.after:
                yield self._removal(node, following)

    def _removal(self, node: ast.stmt, following: ast.stmt | None = None) -> Edit:
        """A string right after a constant documents it and goes with it."""
        last = following if isinstance(node, ast.Assign | ast.AnnAssign) and _is_text(following) else node
        return Edit(with_comments(self.lines, node), last_line(self.lines, last), "")

    def _class_edits(self, node: ast.ClassDef, inner: list[Edit]) -> list[Edit]:
        if not _empties(node, inner):
            return inner
        first, *rest = inner
        return [first._replace(text=" " * node.body[0].col_offset + "pass\n"), *rest]

    def _import_edits(self, node: Import) -> list[Edit]:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            return []
        bound = {alias: alias.asname or alias.name.split(".")[0] for alias in node.names}
        dropped = [alias for alias, name in bound.items() if name in self.before and name not in self.after]
        if len(dropped) == len(node.names):
            return [self._removal(node)]
        rows = [node.lineno, *(alias.lineno for alias in node.names), node.end_lineno]
        if len(set(rows)) == len(rows):
            return [Edit(with_comments(self.lines, alias), alias.end_lineno, "") for alias in dropped]
        return [self._retyped(node, [alias for alias in node.names if alias not in dropped])] if dropped else []

    def _retyped(self, node: Import, names: list[ast.alias]) -> Edit:
        """The import with fewer names on one line, or one name a line where that is too long."""
        start, end = self.lines[node.lineno - 1], self.lines[node.end_lineno - 1]
        indent = start[: column(start, node.col_offset)]
        tail = end[column(end, node.end_col_offset) :]
        words = [alias.name + (f" as {alias.asname}" if alias.asname else "") for alias in names]
        head = f"from {'.' * node.level}{node.module or ''} import " if isinstance(node, ast.ImportFrom) else "import "
        line = indent + head + ", ".join(words)
        if len(line) > LINE_LENGTH and isinstance(node, ast.ImportFrom):
            line = f"{indent}{head}(\n" + "".join(f"{indent}    {word},\n" for word in words) + f"{indent})"
        return Edit(node.lineno, node.end_lineno, line + tail)


def _is_text(node: ast.stmt | None) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _empties(node: ast.ClassDef | ast.If, inner: list[Edit]) -> bool:
    """Whether removals leave nothing of a block."""
    removed = {line for edit in inner if not edit.text for line in range(edit.first, edit.last + 1)}
    return all(statement.lineno in removed for statement in node.body)
