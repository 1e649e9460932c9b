"""Which of MLX's operators a built library calls: the names that a linker leaves open in it.

A guard for Python code does not see what C++ calls. This is the same rule for a library."""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from course.errors import CourseError

_SECONDS = 30
# What kernel days teach, in all the ways that MLX offers it: the usual second argument of `forbidden_symbols`.
OPERATORS = (
    "matmul", "addmm", "block_masked_mm", "gather_mm", "segmented_mm", "inner", "outer", "tensordot", "einsum",
    "quantized_matmul", "gather_qmm", "qqmm", "quantize", "dequantize", "softmax", "logsumexp", "fast", "linalg", "fft",
    "conv_general", "conv1d", "conv2d", "import_function", "compile",
    # What they are made of.
    "multiply", "divide", "sum", "mean", "cumsum", "exp", "sigmoid", "tanh", "rsqrt", "square", "bitwise_and",
    "right_shift", "take", "vmap",
)  # fmt: skip
_SIGNS = {"multiply": "*", "divide": "/", "bitwise_and": "&", "right_shift": ">>"}  # operators of arrays in C++
# Products of other libraries, and looking up by name what must not be linked.
_ALWAYS = re.compile(r"_?(cblas_\w+|[sdcz](gemm|gemv|dot)_?|dlsym|dlopen)(@.*)?$")


def forbidden_symbols(library: Path, names: Iterable[str]) -> list[str]:
    """Names that `library` takes from elsewhere and must not: MLX's operators in `names`, BLAS, and `dlsym`.

    names: dotted, under `mlx.core`: "addmm" also stands for its primitive AddMM, "fast" for all of mlx.core.fast.
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
    inside = "::".join(["mlx::core", *path])
    words = "_?".join(map(re.escape, last.split("_")))
    sign = f"|{inside}::operator{re.escape(_SIGNS[name])}\\({inside}::array" if name in _SIGNS else ""
    return re.compile(rf"\b{re.escape(inside)}::(?i:{words})\b{sign}")


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
