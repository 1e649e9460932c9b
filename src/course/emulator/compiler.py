"""The C++ compiler: which one, its flags for fast and checked kernels, and what its messages mean."""

import os
import platform
import re
import shlex
import shutil
from functools import cache
from pathlib import Path

from course.emulator.errors import KernelError, Problem
from course.emulator.explain import explain
from course.emulator.process import run

INCLUDE = Path(__file__).with_name("include")
TIMEOUT = 90.0  # seconds for one kernel file, which takes about one

_COMMON = [
    *("-std=gnu++20", "-O1", "-g", "-fPIC", "-ftemplate-depth=200"),
    *("-Werror=return-type", "-Werror=vla", "-Werror=narrowing"),
    *("-fno-exceptions", "-fno-rtti", "-fno-strict-aliasing", "-fno-math-errno", "-ffp-contract=off"),
]
_CHECKED = ["-fsanitize=thread", "-fsanitize=bounds,integer-divide-by-zero", "-fsanitize-recover=all"]
_MESSAGE = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:\d+:)? (?P<kind>fatal error|error|note): (?P<text>.*)$")
_CONTEXT = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:\d+:)?\s+required from here$")


@cache
def compiler() -> str:
    """The compiler to use: $CXX, else g++, else clang++. Raises KernelError where there is none."""
    words = [word for word in shlex.split(os.environ.get("CXX", "")) if Path(word).name not in ("ccache", "sccache")]
    wanted = words[:1] or ["g++", "clang++", "c++"]
    for name in wanted:
        path = shutil.which(name)
        if path:
            return path
    raise KernelError(f"no C++ compiler ({', '.join(wanted)} not on PATH): install g++, or set CXX to one")


@cache
def is_clang(path: str) -> bool:
    return "clang" in version(path)


@cache
def version(path: str) -> str:
    """What the compiler says of itself: part of a compiled kernel's cache key."""
    return run([path, "--version"], 10.0).stdout


def flags(path: str, checked: bool) -> list[str]:
    """Compile flags of one kernel; a checked one is instrumented for the runtime's own sanitizer."""
    found = [*_COMMON, *_machine_flags()]
    if is_clang(path):
        found += ["-fno-caret-diagnostics", "-ferror-limit=5", "-fbracket-depth=1024"]
        extra = ["-mllvm", "-tsan-instrument-func-entry-exit=0"]
    else:
        found += ["-fno-diagnostics-show-caret", "-fmax-errors=5", "-fexcess-precision=16"]
        extra = ["--param", "tsan-instrument-func-entry-exit=0"]
    if platform.system() == "Linux":
        found.append("-fstack-clash-protection")
    return [*found, *_CHECKED, *extra] if checked else found


@cache
def _machine_flags() -> tuple[str, ...]:
    """Half-precision conversions in hardware where this machine has them."""
    if platform.machine() != "x86_64":
        return ()
    try:
        words = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:
        return ()
    return tuple(f"-m{name}" for name in ("f16c", "avx2") if name in words)


def compile_to(output: Path, source: Path, checked: bool, own: frozenset[str]) -> None:
    """Compile the C++ file `source` to the shared object `output`.

    The sanitizer's flags are left out of the link: the runtime has its functions. Raises KernelError with the
    Metal source's own lines.
    """
    path = compiler()
    built = output.with_suffix(".o")
    result = run([path, *flags(path, checked), "-I", str(INCLUDE), "-c", "-o", str(built), str(source)], TIMEOUT)
    if result.status:
        raise KernelError.of(problems(result.stderr, own))
    dynamic = ["-undefined", "dynamic_lookup"] if platform.system() == "Darwin" else []
    result = run([path, "-shared", *dynamic, "-o", str(output), str(built)], TIMEOUT)
    if result.status:
        raise KernelError(f"cannot link the kernel: {result.stderr.strip()[-400:]}")
    if platform.system() == "Darwin":  # where lines stay in the object file otherwise
        run(["dsymutil", "-o", f"{output}.dSYM", str(output)], TIMEOUT)
    built.unlink()


def problems(messages: str, own: frozenset[str]) -> list[Problem]:
    """The compiler's errors as problems of the files `own`: one in a header is told at the line that led there."""
    found: list[Problem] = []
    here: tuple[str, int] | None = None
    for line in messages.splitlines():
        context = _CONTEXT.match(line)
        message = _MESSAGE.match(line)
        if context and context["file"] in own:
            here = (context["file"], int(context["line"]))
        elif message and message["kind"] != "note":
            place = (message["file"], int(message["line"]))
            file, number = place if place[0] in own else (here or place)
            found.append(Problem(Path(file).name if file not in own else file, number, explain(message["text"])))
            here = None
    if not found:
        found.append(Problem(min(own, default="kernel"), 1, messages.strip()[-400:] or "the compiler failed silently"))
    return found
