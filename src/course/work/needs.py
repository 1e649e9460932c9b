"""What functions taken from one source need in another: imports, private helpers, private methods of their classes."""

import ast
from collections.abc import Collection, Iterator
from typing import NamedTuple

from course.starter.prune import is_typing_block
from course.starter.source import Edit, indent_of, last_line, split_lines, with_comments
from course.starter.symbols import COMPOUND, Function, assigned_names, is_private
from course.starter.uses import uses
from course.work.functions import Key, functions

Import = ast.Import | ast.ImportFrom


class Clash(Exception):
    """Both sources have a helper of one name, and they differ."""


class Source(NamedTuple):
    """A source, its lines, its syntax."""

    text: str
    lines: list[str]
    tree: ast.Module

    @classmethod
    def of(cls, text: str) -> "Source":
        return cls(text, split_lines(text), ast.parse(text))


class Binding(NamedTuple):
    """Where a name comes from: a statement (for an import its one alias), of a class or of the module (owner "")."""

    node: ast.stmt
    owner: str
    statement: str

    @property
    def is_import(self) -> bool:
        return isinstance(self.node, Import)


def bindings(source: Source) -> dict[str, Binding]:
    """What each name of a module stands for; a private member of a class is called "Class._name"."""
    found: dict[str, Binding] = {}
    for name, binding in _bindings(source, source.tree.body, "", ""):
        found.setdefault(name, binding)
    return found


def _bindings(source: Source, body: list[ast.stmt], owner: str, guard: str) -> Iterator[tuple[str, Binding]]:
    prefix = f"{owner}." if owner else ""
    for node in body:
        if isinstance(node, Import):
            for alias in node.names:
                one = ast.copy_location(_only(node, alias), node)
                text = f"{guard}    {ast.unparse(one)}\n" if guard else ast.unparse(one) + "\n"
                yield prefix + (alias.asname or alias.name.partition(".")[0]), Binding(node, owner, text)
        elif is_typing_block(node):
            yield from _bindings(source, node.body, owner, f"if {ast.unparse(node.test)}:\n")
        elif isinstance(node, Function | ast.ClassDef):
            yield prefix + node.name, Binding(node, owner, _lines(source, node))
            if isinstance(node, ast.ClassDef):
                yield from _bindings(source, node.body, prefix + node.name, "")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            yield from ((prefix + n, Binding(node, owner, _lines(source, node))) for n in assigned_names(node))
        elif isinstance(node, COMPOUND):
            inner = [stmt for field in ("body", "orelse", "finalbody") for stmt in getattr(node, field, [])]
            inner += [stmt for handler in getattr(node, "handlers", []) for stmt in handler.body]
            yield from (
                (n, b._replace(node=node, statement=_lines(source, node)))
                for n, b in _bindings(source, inner, owner, "")
            )


def _only(node: Import, alias: ast.alias) -> Import:
    if isinstance(node, ast.Import):
        return ast.Import([alias])
    return ast.ImportFrom(node.module, [alias], node.level)


def _lines(source: Source, node: ast.stmt) -> str:
    return "".join(source.lines[with_comments(source.lines, node) - 1 : last_line(source.lines, node)])


def missing(mine: Source, source: Source, given: Source, keys: Collection[Key]) -> list[str]:
    """Names of `source` that its functions `keys` use and that `mine` lacks, with what these use in turn.

    Raises Clash where `mine` has another helper of that name, unless the learner was given one (in `given`).
    """
    here, there, handed = bindings(mine), bindings(source), bindings(given)
    nodes: list[ast.AST] = [node for key, node in functions(source.tree).items() if key in keys]
    found: list[str] = []
    seen: set[str] = set()
    while nodes:
        for name in _meant(uses(nodes.pop()), there) - seen:
            seen.add(name)
            if name not in here:
                found.append(name)
                nodes.append(there[name].node)
            elif name not in handed and here[name].statement.strip() != there[name].statement.strip():
                raise Clash(name)
    return [n for n in there if n in found and not _inside(n, found) and there[n].owner in {"", *here}]


def _meant(used: set[str], there: dict[str, Binding]) -> set[str]:
    """The bindings that used names may stand for: `._name` is a member of any class."""
    members = {name for name in there if "." in name and is_private(name.rpartition(".")[2])}
    return {name for name in used if name in there} | {n for n in members if f".{n.rpartition('.')[2]}" in used}


def _inside(name: str, found: list[str]) -> bool:
    """Whether a member comes with its class."""
    return any(name.startswith(f"{other}.") for other in found)


def insertions(mine: Source, source: Source, names: list[str]) -> list[Edit]:
    """Edits that put statements of `source` into `mine`, each before what follows it there."""
    here, there = bindings(mine), bindings(source)
    order = list(there)
    texts: dict[int, list[str]] = {}
    for statement, group in _statements(names, there).items():
        first = there[group[0]]
        later = [name for name in order[order.index(group[-1]) + 1 :] if _alike(there[name], first)]
        line, indent, at_end = _place_for(mine, here, later, first)
        texts.setdefault(line, []).append(statement if first.is_import else _spaced(statement, indent, at_end))
    return [Edit(line, line - 1, "".join(parts)) for line, parts in texts.items()]


def _statements(names: list[str], there: dict[str, Binding]) -> dict[str, list[str]]:
    """The names by the text that brings them: names that one statement imports are imported by one again."""
    groups: dict[ast.stmt, list[str]] = {}
    for name in names:
        groups.setdefault(there[name].node, []).append(name)
    return {_joined(node, [there[name] for name in group]): group for node, group in groups.items()}


def _joined(node: ast.stmt, group: list[Binding]) -> str:
    *_, first = group[0].statement.rpartition(" import ")
    if not isinstance(node, ast.ImportFrom):
        return "".join(binding.statement for binding in group)
    rest = [binding.statement.rpartition(" import ")[2].strip() for binding in group[1:]]
    return group[0].statement.removesuffix(first) + ", ".join([first.strip(), *rest]) + "\n"


def _alike(one: Binding, other: Binding) -> bool:
    return (one.owner, one.is_import) == (other.owner, other.is_import)


def _place_for(mine: Source, here: dict[str, Binding], later: list[str], what: Binding) -> tuple[int, str, bool]:
    """The line of the first of `later` that is there, else the end; the indent of statements; whether it is the end."""
    for name in later:
        if name in here and _alike(here[name], what):
            node = here[name].node
            return with_comments(mine.lines, node), indent_of(mine.lines[node.lineno - 1]), False
    if what.is_import:
        return _after_imports(mine), "", True
    if not what.owner:
        return len(mine.lines) + 1, "", True
    node = here[what.owner].node
    return last_line(mine.lines, node) + 1, indent_of(mine.lines[node.body[-1].lineno - 1]), True


def _after_imports(mine: Source) -> int:
    """The line after the imports that open the file, or after its docstring and first comments."""
    line = 1
    while line <= len(mine.lines) and mine.lines[line - 1].startswith("#"):
        line += 1
    for index, node in enumerate(mine.tree.body):
        text = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not (text or isinstance(node, Import) or is_typing_block(node)):
            break
        line = node.end_lineno + 1
    return line


def _spaced(statement: str, indent: str, at_end: bool) -> str:
    """The statement with the blank lines that part it from its neighbours."""
    text = reindented(statement, indent)
    blank = "\n" if indent else "\n\n"
    return blank + text if at_end else text + blank


def reindented(text: str, indent: str) -> str:
    """The lines of a definition under another indent."""
    own = indent_of(text)
    if own == indent:
        return text
    lines = split_lines(text)
    return "".join(indent + line.removeprefix(own) if line.strip() else line for line in lines)
