"""Which of MLX's operators a built library calls: the names that a linker leaves open in it.

A guard for Python code does not see what C++ calls. This is the same rule for a library."""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from course.errors import CourseError

_SECONDS = 30
# Products of other libraries, and looking up by name what must not be linked.
_ALWAYS = re.compile(r"_?(cblas_\w+|[sdcz](gemm|gemv|dot)_?|dlsym|dlopen)(@.*)?$")


def forbidden_symbols(library: Path, names: Iterable[str]) -> list[str]:
    """Names that `library` takes from elsewhere and must not: MLX's operators in `names`, BLAS, and `dlsym`.

    names: dotted, under `mlx.core`: "matmul" also stands for its primitive Matmul, "fast" for all of mlx.core.fast.
    Raises CourseError where `nm`, which comes with the compiler, cannot read the library.
    """
    patterns = [_pattern(name) for name in names]
    return [
        symbol
        for symbol in _undefined(library)
        if _ALWAYS.match(symbol) or any(pattern.search(symbol) for pattern in patterns)
    ]


def _pattern(name: str) -> re.Pattern[str]:
    *path, last = name.split(".")
    primitive = "".join(word.capitalize() for word in last.split("_"))
    inside = "::".join(["mlx::core", *path])
    return re.compile(rf"\b{re.escape(inside)}::({re.escape(last)}|{re.escape(primitive)})\b")


def _undefined(library: Path) -> list[str]:
    """Undefined symbols, C++ names as one writes them."""
    listing = ["-gu"] if sys.platform == "darwin" else ["-D", "--undefined-only", "--format=posix"]
    names = [line.split()[0] for line in _output(["nm", *listing, str(library)]).splitlines() if line.strip()]
    return _output(["c++filt", *(["-_"] if sys.platform == "darwin" else [])], "\n".join(names)).splitlines()


def _output(command: list[str], text: str = "") -> str:
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        detail = getattr(error, "stderr", "") or error
        raise CourseError(
            f"{command[0]} cannot read the library ({str(detail).strip()}): it comes with the compiler (Debian, "
            "Ubuntu: apt install binutils; macOS: xcode-select --install)"
        ) from None
    return done.stdout
