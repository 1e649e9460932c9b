"""Which names a piece of syntax uses: `name` for a variable, `.name` for an attribute."""

import ast
import re

from course.starter.symbols import is_private

TYPING_CALLS = {"cast", "TypeVar", "NewType", "ParamSpec", "TypeAliasType"}


def uses(*nodes: ast.AST) -> set[str]:
    """Names and private attributes that the nodes use, also in string annotations and `__all__`."""
    finder = _Uses()
    for node in nodes:
        finder.visit(node)
    return finder.found


class _Uses(ast.NodeVisitor):
    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Store):
            self.found.add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if is_private(node.attr):
            self.found.add(f".{node.attr}")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and node.value.isidentifier() and is_private(node.value):
            self.found |= {node.value, f".{node.value}"}

    def visit_Global(self, node: ast.Global) -> None:
        self.found.update(node.names)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.found.add(node.target.id)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets):
            self._add_strings(node.value)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._add_strings(node.annotation)
        self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        if node.annotation:
            self._add_strings(node.annotation)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if node.returns:
            self._add_strings(node.returns)
        self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Call(self, node: ast.Call) -> None:
        if _last_name(node.func) in TYPING_CALLS:
            for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                self._add_strings(argument)
        self.generic_visit(node)

    def _add_strings(self, node: ast.AST) -> None:
        """Add the names in strings that stand for types: "mx.array", but not what `Literal["mx"]` holds."""
        if isinstance(node, ast.Subscript) and _last_name(node.value) == "Literal":
            return
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self.found.update(re.findall(r"(?<![.\w])[^\W\d]\w*", node.value))
        for child in ast.iter_child_nodes(node):
            self._add_strings(child)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
