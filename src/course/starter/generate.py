"""The learner's package from the reference package: task bodies become stubs, all other text is kept."""

import ast
import textwrap
from pathlib import Path

from course.curriculum import Curriculum, FileSymbols
from course.errors import CourseError
from course.starter.bodies import stub_body
from course.starter.prune import prune
from course.starter.source import LINE_LENGTH, apply, split_lines
from course.starter.symbols import check_found, check_listed, stubs

BUILT = {".pyc", ".so", ".dylib", ".pyd"}


def generate(curriculum: Curriculum, src: Path, dst: Path) -> None:
    """Write the starter of the reference package `src` into the folder `dst`. Raises CourseError before it writes."""
    for name, content in render(curriculum, src).items():
        path = dst / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def render(curriculum: Curriculum, src: Path) -> dict[str, bytes]:
    """The starter's files by name. Raises CourseError where the registry and the reference disagree."""
    sources = read_package(src)
    for name in curriculum.files:
        if name not in sources:
            raise CourseError(
                f"{src.name}/{name}: the curriculum lists this file, but it is missing: write or unlist it"
            )
    files = {}
    for name, content in sources.items():
        listed = curriculum.files.get(name)
        files[name] = content if not name.endswith(".py") else _render_file(src.name, name, content, listed)
    return files


def read_package(folder: Path) -> dict[str, bytes]:
    """All files of a package by name, without what Python, a compiler or an editor leaves there."""
    paths = (p for p in sorted(folder.rglob("*")) if p.is_file() and p.suffix not in BUILT)
    names = {path.relative_to(folder): path for path in paths}
    hidden = [name for name in names if any(part.startswith(".") or part == "__pycache__" for part in name.parts)]
    return {name.as_posix(): path.read_bytes() for name, path in names.items() if name not in hidden}


def _render_file(package: str, name: str, content: bytes, listed: FileSymbols | None) -> bytes:
    file = f"{package}/{name}"
    try:
        text = content.decode()
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise CourseError(f"{file}: is no Python source: {error}") from None
    _check_imports(file, package, tree)
    if name.rpartition("/")[2] == "__init__.py":
        _check_init(file, tree)
    if listed is None:
        return content
    check_found(file, tree, listed)
    return stubbed(file, text, listed).encode() if listed.tasks else content


def stubbed(file: str, text: str, listed: FileSymbols) -> str:
    """The starter's text of one task file, whose name `file` is for errors only."""
    tree, lines = ast.parse(text), split_lines(text)
    check_listed(file, tree, listed)
    edits = [stub_body(lines, node, message) for node, message in stubs(file, tree, listed)]
    starter = prune(text, apply(text, edits), listed)
    opens_with_docstring = ast.get_docstring(tree) is not None and tree.body[0].lineno == 1
    return _header(listed) + ("" if opens_with_docstring else "\n") + starter


def _header(listed: FileSymbols) -> str:
    """The first lines of a task file; they name its chapters."""
    chapters = dict.fromkeys(f"book/src/{task.chapter}" for task in listed.tasks.values())
    text = f"This file is yours to edit. Read {', '.join(sorted(chapters))}."
    width = LINE_LENGTH - 2
    return "".join(f"# {line}\n" for line in textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False))


def _check_imports(file: str, package: str, tree: ast.Module) -> None:
    """Imports inside the package are relative, so that both packages can be the one under test."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else names
        inside = isinstance(node, ast.ImportFrom) and node.level > 0
        if not inside and any(module.split(".")[0] == package for module in modules):
            raise CourseError(f"{file}:{node.lineno}: imports {package} by name: make the import relative")
        if inside and node.module and any(name.startswith("_") for name in names):
            private = next(name for name in names if name.startswith("_"))
            raise CourseError(f"{file}:{node.lineno}: imports the private {private}: make it public, as it is shared")
        if "*" in names:
            raise CourseError(f"{file}:{node.lineno}: star import: name what is used")


def _check_init(file: str, tree: ast.Module) -> None:
    if len(tree.body) != 1 or ast.get_docstring(tree) is None:
        raise CourseError(f"{file}: an __init__ file holds a docstring and nothing else: move the code to a module")
