"""The examples that a package declares for its kernels: `EXAMPLES` in its modules under `kernels/`."""

import importlib
import re
from collections.abc import Callable

import mlx.core as mx

from course.errors import CourseError
from course.paths import package_folder, source_file

Example = Callable[[], list[mx.array]]
_DECLARED = re.compile(r"^EXAMPLES\b", re.MULTILINE)
_OPENING = re.compile(r"^// (?!This file is yours)([^:.,\n]+)", re.MULTILINE)


def examples(package: str) -> dict[str, Example]:
    """Kernel name -> a function that calls the kernel on small inputs. Raises CourseError where there is none."""
    folder = package_folder(package) / "kernels"
    found: dict[str, Example] = {}
    for path in sorted(folder.glob("*.py")):
        if _DECLARED.search(path.read_text(encoding="utf-8")):
            found |= importlib.import_module(f"{package}.kernels.{path.stem}").EXAMPLES
    if not found:
        raise CourseError(f"{package} declares no kernels: they come with Week 2 Day 5 (`pdm run starter` adds files)")
    return found


def summary(package: str, name: str) -> str:
    """What a kernel file's opening comment says before its first comma, colon or full stop; empty without a comment."""
    path = source_file(package_folder(package), f"extensions/metal/{name}.metal")
    opening = _OPENING.search(path.read_text(encoding="utf-8")) if path.is_file() else None
    return opening[1].strip() if opening else ""
