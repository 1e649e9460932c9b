"""What a C++ extension is built with: CMake, Ninja, the compiler, and the pair of MLX and nanobind.

Every missing or unfit part is told with its fix. It knows versions, and nothing of sources."""

import functools
import hashlib
import importlib.metadata
import os
import platform
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from course.errors import CourseError

COMPILERS = ("c++", "g++", "clang++")
# nanobind's types cross between two libraries only where both were built with the same ABI version of it; the first
# is inside the MLX wheel, so each MLX has its nanobind.
PAIRS = {
    "0.32.0": ("2.13", "2.14"),
    "0.32.2": ("2.15",),
    "0.32.3": ("3.0.1", "3.1"),
    "0.32.4": ("3.0.1", "3.1"),
}
_SECONDS = 30


@dataclass(frozen=True)
class Toolchain:
    """Programs by path; `identity` changes whenever a library built by another toolchain would not do here."""

    cmake: str
    ninja: str
    compiler: str
    ccache: str | None
    identity: str


def find_toolchain() -> Toolchain:
    """What this machine has. Raises CourseError with the fix for what is missing."""
    check_pair(version_of("mlx"), version_of("nanobind"))
    compiler = find_compiler()
    parts = [
        _first_line(compiler),
        f"mlx {version_of('mlx')}",
        f"nanobind {version_of('nanobind')}",
        f"python {platform.python_version()} {sys.executable}",
        _cpu(),
    ]
    return Toolchain(find_program("cmake"), find_program("ninja"), compiler, shutil.which("ccache"), "\n".join(parts))


def find_compiler() -> str:
    """The C++ compiler: `CXX` where that is set, else the first found. Raises CourseError."""
    wanted = shlex.split(os.environ.get("CXX", ""))
    if wanted and not shutil.which(wanted[-1]):
        raise CourseError(f"CXX={os.environ['CXX']} is no program on PATH: unset it, or name a C++20 compiler")
    for name in wanted[-1:] or COMPILERS:
        if path := shutil.which(name):
            return path
    raise CourseError(
        "no C++ compiler found (c++, g++ or clang++): on Debian or Ubuntu `apt install g++`, on a Mac "
        "`xcode-select --install`"
    )


def check_pair(mlx: str, nanobind: str) -> None:
    """Raises CourseError for a nanobind whose types this MLX does not know; a newer MLX is left to the smoke test."""
    fit = PAIRS.get(mlx)
    if fit and not any(nanobind == version or nanobind.startswith(f"{version}.") for version in fit):
        raise CourseError(
            f"mlx {mlx} works with nanobind {' or '.join(fit)}, but {nanobind} is installed: the library would build, "
            "and then refuse every array; `pdm install` puts the pinned pair back"
        )


def version_of(package: str) -> str:
    """The installed version. Raises CourseError."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise CourseError(f"{package} is not installed: `pdm install` installs what the course needs") from None


def find_program(name: str) -> str:
    """A program of this environment, else of the machine."""
    own = Path(sys.executable).parent / name
    path = str(own) if os.access(own, os.X_OK) else shutil.which(name)
    if not path:
        raise CourseError(f"{name} is missing: `pdm install` installs it with the course's packages")
    return path


@functools.cache
def _first_line(compiler: str) -> str:
    """What the compiler calls itself. Raises CourseError for one that does not run."""
    command = [compiler, "--version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CourseError(f"{compiler} --version does not run ({error}): install g++ or clang++") from None
    if done.returncode:
        said = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[0]
        raise CourseError(
            f"{compiler} --version fails ({said}): install g++ or clang++, on a Mac `xcode-select --install`"
        )
    return f"{compiler} {(done.stdout.splitlines() or [''])[0]}"


@functools.cache
def _cpu() -> str:
    """The machine's instruction set: a library made for this CPU may not run on another."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return f"{platform.system()} {platform.machine()} {hashlib.sha256(flags.encode()).hexdigest()[:16]}"
