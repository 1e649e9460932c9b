"""The learner's package from the reference package: task bodies become stubs, all other text is kept.

Tasks that are `done` keep the reference's body, with the helpers and imports that it needs: a checkpoint."""

import ast
from pathlib import Path

from course.curriculum import Curriculum, FileSymbols
from course.errors import CourseError
from course.paths import extension_folder, extension_name, source_file
from course.starter.bodies import stub_body
from course.starter.header import header
from course.starter.prune import prune
from course.starter.regions import regions, stubbed_source
from course.starter.source import apply, split_lines
from course.starter.symbols import Done, check_found, check_listed, nothing, stubs

BUILT = {".pyc", ".so", ".dylib", ".pyd"}
LEFT = {"__pycache__", "build"}  # folders in which only programs write
MARKED = (".cpp", ".h", ".metal")  # languages whose tasks stand between comments


def generate(curriculum: Curriculum, src: Path, dst: Path) -> None:
    """Write the starter of the reference package `src` into the folder `dst` (its C++ and Metal files beside it).

    Raises CourseError before it writes.
    """
    write(render(curriculum, src), dst)


def write(files: dict[str, bytes], dst: Path) -> None:
    """Write files of a package, named as in the registry, into the folder `dst` and its extension folder."""
    for name, content in files.items():
        path = source_file(dst, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def render(curriculum: Curriculum, src: Path, done: Done = nothing) -> dict[str, bytes]:
    """The starter's files by name. Raises CourseError where the registry and the reference disagree."""
    sources = read_package(src)
    for name in curriculum.files:
        if name not in sources:
            place = source_file(Path(src.name), name)
            raise CourseError(f"{place}: the curriculum lists this file, but it is missing: write or unlist it")
    return {name: _render(src.name, name, content, curriculum, done) for name, content in sources.items()}


def render_file(curriculum: Curriculum, src: Path, name: str, done: Done = nothing) -> bytes:
    """One file of the starter. Raises FileNotFoundError for one that the reference does not have."""
    return _render(src.name, name, source_file(src, name).read_bytes(), curriculum, done)


def read_package(folder: Path) -> dict[str, bytes]:
    """The content of `package_files`."""
    return {name: path.read_bytes() for name, path in package_files(folder).items()}


def package_files(folder: Path) -> dict[str, Path]:
    """All files of a package and of its extension folder, named as in the registry: "extensions/src/qmv.cpp".

    What Python, a compiler or an editor leaves there does not count.
    """
    extension = {extension_name(name): path for name, path in _list_folder(extension_folder(folder)).items()}
    return _list_folder(folder) | extension


def _list_folder(folder: Path) -> dict[str, Path]:
    paths = (p for p in sorted(folder.rglob("*")) if p.is_file() and p.suffix not in BUILT)
    names = {path.relative_to(folder): path for path in paths}
    hidden = [name for name in names if any(part.startswith(".") or part in LEFT for part in name.parts)]
    return {name.as_posix(): path for name, path in names.items() if name not in hidden}


def _render(package: str, name: str, content: bytes, curriculum: Curriculum, done: Done) -> bytes:
    listed = curriculum.files.get(name)
    if name.endswith(".py"):
        return _render_file(package, name, content, listed, done)
    if not name.endswith(MARKED):
        return content
    file = str(source_file(Path(package), name))
    try:
        text = content.decode()
    except ValueError as error:
        raise CourseError(f"{file}: is no text: {error}") from None
    if listed is None and regions(file, text):
        raise CourseError(f"{file}: marks tasks, but the curriculum does not list it: list it or drop the comments")
    return content if listed is None else stubbed_source(file, text, listed, done).encode()


def _render_file(package: str, name: str, content: bytes, listed: FileSymbols | None, done: Done) -> bytes:
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
    return stubbed(file, text, listed, done).encode() if listed.tasks else content


def stubbed(file: str, text: str, listed: FileSymbols, done: Done = nothing) -> str:
    """The starter's text of one task file, whose name `file` is for errors only."""
    tree, lines = ast.parse(text), split_lines(text)
    check_listed(file, tree, listed)
    edits = [stub_body(lines, node, message) for node, message in stubs(file, tree, listed, done)]
    starter = prune(text, apply(text, edits), listed)
    opens_with_docstring = ast.get_docstring(tree) is not None and tree.body[0].lineno == 1
    return header(listed) + ("" if opens_with_docstring else "\n") + starter


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
