"""The C++ library of a submission, compiled and tried behind the boundary: a build may run anything."""

import os
from dataclasses import replace
from pathlib import Path

import msgspec

from course.boundary.compiling import Compiling
from course.boundary.settings import Boundary
from course.build import TREES, put_built
from course.errors import CourseError
from course.failure import Raised, Stopped
from course.paths import EXTENSION, extension_folder

_PROCESSES = 2048


def build_behind(boundary: Boundary, package: Path) -> None:
    """Bring the library of `package`, a folder of the boundary's tree, up to date. Raises CourseError."""
    from course.boundary.sandboxed import Sandboxed

    limits = boundary.limits
    roomy = msgspec.structs.replace(
        limits,
        memory_mb=limits.build_memory_mb,
        cpu_seconds=limits.build_seconds,
        processes=max(limits.processes, _PROCESSES),
    )
    tests = Path(__file__).with_name("compiling.py")
    compiled = os.environ.get("CCACHE_DIR", str(TREES / "ccache"))
    compiled = compiled if os.path.isdir(compiled) else None
    readable = (*boundary.readable, *([compiled] if compiled else []))
    observer = Sandboxed(tests, package.name, (), msgspec.structs.replace(boundary, limits=roomy, readable=readable))
    try:
        found = observer.observe(replace(Compiling, timeout=float(limits.build_seconds)), compiled, {})
    except (Raised, Stopped) as error:
        raise CourseError(f"{extension_folder(package).name} cannot be built: {error}") from None
    finally:
        observer.close()
    match found:
        case {"library": bytes(content)}:
            put_built(content, extension_folder(package), package, EXTENSION)
        case {"problem": str(problem)}:
            raise CourseError(problem)
        case _:
            raise CourseError(f"{extension_folder(package).name} cannot be built: the compiler's process says nothing")
