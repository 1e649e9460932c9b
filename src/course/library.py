"""The C++ library of the package under test: built before its cases run, or the reason why they cannot run."""

from collections.abc import Callable
from pathlib import Path

from course.build import ensure_built, is_stale
from course.curriculum import Task
from course.errors import CourseError
from course.failure import Failure
from course.paths import EXTENSION, extension_folder, source_file
from course.stub import find_stubs


def build(package: Path, say: Callable[[str], None]) -> str | None:
    """Bring the library of `package` up to date; None, or why that failed. `say` gets a line before a long wait."""
    source = extension_folder(package)
    try:
        if is_stale(source, package, EXTENSION):
            say(f"building the C++ kernels in {source.name} ...")
        ensure_built(source, package, EXTENSION)
    except CourseError as error:
        return str(error)
    return None


def without_library(task: Task, package: Path, problem: str) -> Failure:
    """How a case of `task` ends where there is no library: as TODO while a stub of the task is left, else as failed."""
    for file in task.symbols:
        path = source_file(package, file)
        left = find_stubs(path.read_text(errors="replace")) if path.is_file() else ()
        if stub := next((stub for stub in left if stub.label == task.label), None):
            return Failure("todo", stub.text)
    return Failure("not built", problem)
