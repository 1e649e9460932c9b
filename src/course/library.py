"""What is compiled before cases of kernel days run: the package's C++ library, and the emulator of Metal kernels."""

from collections.abc import Callable, Iterable
from pathlib import Path

from course.boundary.library import build_behind
from course.boundary.settings import Boundary
from course.build import ensure_built, is_stale
from course.curriculum import Task
from course.errors import CourseError
from course.failure import Failure
from course.paths import EXTENSION, SRC, extension_folder, source_file
from course.stub import find_stubs

_NAMES = {"library": "the C++ kernels", "emulator": "the kernel emulator"}
_EMULATOR = SRC / "course" / "emulator"


def build(
    parts: Iterable[str], package: Path, say: Callable[[str], None], boundary: Boundary | None = None
) -> dict[str, str]:
    """Bring "library" (of `package`) and "emulator" up to date; returns why that failed, for those that did.

    `say` gets a line before a long wait. With a boundary the library is compiled and tried behind it.
    """
    places = {
        "library": (extension_folder(package), package, EXTENSION),
        "emulator": (_EMULATOR / "native", _EMULATOR, "_emulator"),
    }
    problems = {}
    for part in parts:
        try:
            if is_stale(*places[part]):
                say(f"building {_NAMES[part]} (the first time takes a minute or more)")
                if boundary and part == "library":
                    build_behind(boundary, package)
                else:
                    ensure_built(*places[part])
        except CourseError as error:
            problems[part] = str(error)
    return problems


def without_library(task: Task, package: Path, problem: str) -> Failure:
    """How a case of `task` ends where a build failed: as TODO while a stub of the task is left, else as failed."""
    for file in task.symbols:
        path = source_file(package, file)
        left = find_stubs(path.read_text(errors="replace")) if path.is_file() else ()
        if stub := next((stub for stub in left if stub.label == task.label), None):
            return Failure("todo", stub.text)
    return Failure("not built", problem)
