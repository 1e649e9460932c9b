"""Files of the learner's own that task files import. A grader leaves them out, so it would find an import that fails.

It reads names and imports only: it runs nothing, and knows nothing of what a course file allows but the list that a
release leaves."""

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from course.curriculum import Curriculum
from course.errors import CourseError
from course.work.place import HERE, Place
from course.work.pristine import starter_names

EXTRA_FILES = "curriculum/extra_files.txt"
"""Of a class's repository: the files beside those of the course that its grader takes, one on a line."""


def strangers(curriculum: Curriculum, place: Place = HERE) -> list[str]:
    """A line for each; cheap where the learner has added no file."""
    try:
        added = place.names() - starter_names(place) - _allowed(place)
    except CourseError:
        return []
    users: dict[str, str] = {}
    for name, listed in curriculum.files.items() if added else ():
        if listed.tasks and name.endswith(".py"):
            for module in _imported(name, place):
                users |= {file: name for file in _files(module) if file in added and file not in users}
    return [
        f"{place.show(file)} is no file of the course: a grader does not take it; "
        f"put its code into {place.show(user)}, which imports it"
        for file, user in sorted(users.items())
    ]


def _allowed(place: Place) -> set[str]:
    return set((place.read(f"/{EXTRA_FILES}") or b"").decode(errors="replace").split())


def _files(module: str) -> tuple[str, str]:
    """The names that a module may have: "model/util" is a file or a folder."""
    return f"{module}.py", f"{module}/__init__.py"


def _imported(name: str, place: Place) -> Iterator[str]:
    """Modules of the package that a file imports, as "model/util"; also names that may be functions of one."""
    try:
        tree = ast.parse(place.read(name) or b"")
    except (SyntaxError, ValueError, RecursionError, MemoryError, CourseError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (_path(alias.name, place) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, PurePosixPath(name), place)
            yield base
            yield from (f"{base}/{alias.name}".lstrip("/") for alias in node.names)


def _base(node: ast.ImportFrom, file: PurePosixPath, place: Place) -> str:
    if not node.level:
        return _path(node.module or "", place)
    folder = [*file.parent.parts][: len(file.parts) - node.level]
    return "/".join([*folder, *(node.module or "").split(".")]).rstrip("/")


def _path(module: str, place: Place) -> str:
    """A module that is named in full; outside of the package, a name that no file has."""
    head, _, rest = module.partition(".")
    return rest.replace(".", "/") if head == place.package.name else f"//{module}"
