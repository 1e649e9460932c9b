"""Builds a CMake project of C++ sources into a Python module that speaks MLX's arrays, when something has changed.

The sources are copied into a build tree in `.course/build/` before they are compiled. A tree belongs to a kind of
project, not to a folder, so a scratch copy of the course's extension finds everything compiled but the file that
differs. Next to the library stands what it was made from; both can be copied together and are then up to date."""

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from course.build_errors import summary
from course.errors import CourseError
from course.paths import ROOT
from course.toolchain import Toolchain, find_toolchain

TREES = ROOT / ".course" / "build"
SUFFIXES = {".cpp", ".cc", ".c", ".h", ".hpp", ".inc", ".S", ".cmake"}
_SECONDS = 900
_SMOKE_SECONDS = 60
_SMOKE = """
import importlib.util, sys
import mlx.core as mx
spec = importlib.util.spec_from_file_location(sys.argv[1], sys.argv[2])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
if module.identity(mx.array([1, 2])).tolist() != [1, 2]:
    sys.exit("identity(x) does not return its argument")
"""


def ensure_built(source: Path, destination: Path, module: str) -> Path:
    """The library of the CMake project `source`, as `module.*.so` in the folder `destination`; built if need be.

    The project must not read files outside of `source`; CMake finds MLX and nanobind by `Python_EXECUTABLE`, which is
    set. The module must hold a function `identity(x: array)`, which the smoke test after a build calls.
    Raises CourseError, with the fix or the compiler's first errors, and then leaves an earlier library as it was.
    """
    with _stamp(destination, module) as stamp:
        toolchain = find_toolchain()
        files = sources(source)
        fingerprint = _fingerprint(files, toolchain, module)
        if library := _fresh(stamp, destination, module, fingerprint):
            return library
        with _tree(files, toolchain) as tree:
            built = _build(tree, files, toolchain, module, source)
            library = _install(built, destination, module)
        _note(stamp, fingerprint, library)
        return library


def is_stale(source: Path, destination: Path, module: str) -> bool:
    """Whether `ensure_built` would have to build. Raises CourseError like it."""
    path = _stamp_file(destination, module)
    if not path.exists():
        return True
    with path.open("rb") as stamp:
        return _fresh(stamp, destination, module, _fingerprint(sources(source), find_toolchain(), module)) is None


def sources(folder: Path) -> dict[str, bytes]:
    """What a library is made of, by name: C and C++ files and CMake's. Raises CourseError for no CMake project."""
    if not (folder / "CMakeLists.txt").is_file():
        raise CourseError(f"{folder} holds no CMakeLists.txt: it must be the folder of a C++ extension")
    paths = {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {
        name.as_posix(): path.read_bytes()
        for name, path in paths.items()
        if (name.suffix in SUFFIXES or name.name == "CMakeLists.txt")
        and not any(part.startswith(".") or part == "build" for part in name.parts)
    }


def _fingerprint(files: dict[str, bytes], toolchain: Toolchain, module: str) -> str:
    digest = hashlib.sha256(f"{module}\n{toolchain.identity}\n".encode())
    for name, content in files.items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _stamp_file(destination: Path, module: str) -> Path:
    return destination / f".built{module}"


@contextmanager
def _stamp(destination: Path, module: str) -> Iterator[BinaryIO]:
    """The file that says what a library was made from, locked: who comes second waits, and finds the work done."""
    path = _stamp_file(destination, module)
    try:
        stamp = path.open("a+b")
    except OSError as error:
        raise CourseError(f"cannot write {path} ({error.strerror}): the library goes beside it") from None
    with stamp:
        fcntl.flock(stamp, fcntl.LOCK_EX)
        yield stamp


def _fresh(stamp: BinaryIO, destination: Path, module: str, fingerprint: str) -> Path | None:
    """The library, if it is the one that was made from these sources."""
    stamp.seek(0)
    lines = stamp.read().decode(errors="replace").splitlines()
    found = _libraries(destination, module)
    fresh = len(found) == 1 and lines == [fingerprint, _digest(found[0])]
    return found[0] if fresh else None


def _note(stamp: BinaryIO, fingerprint: str, library: Path) -> None:
    stamp.truncate(0)
    stamp.write(f"{fingerprint}\n{_digest(library)}\n".encode())
    stamp.flush()


def _libraries(folder: Path, module: str) -> list[Path]:
    return sorted(folder.glob(f"{module}.*so"))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextmanager
def _tree(files: dict[str, bytes], toolchain: Toolchain) -> Iterator[Path]:
    """The build tree for this kind of project, locked: a compiler keeps all cores busy, so builds wait in line."""
    kind = hashlib.sha256(files["CMakeLists.txt"] + toolchain.identity.encode()).hexdigest()[:12]
    tree = TREES / kind
    tree.mkdir(parents=True, exist_ok=True)
    with (tree / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield tree


def _build(tree: Path, files: dict[str, bytes], toolchain: Toolchain, module: str, source: Path) -> Path:
    """Compile in `tree` and try the library; returns where it is. Raises CourseError."""
    staged, out = tree / "source", tree / "out"
    named_anew = _stage(files, staged)
    for old in _libraries(out, module):
        old.unlink()
    if named_anew or not (tree / "build" / "build.ninja").exists():
        shutil.rmtree(tree / "build", ignore_errors=True)
        _run(_configure(tree, toolchain), tree, toolchain, source)
    _run([toolchain.cmake, "--build", str(tree / "build")], tree, toolchain, source)
    built = _libraries(out, module)
    if len(built) != 1:
        raise CourseError(f"{_show(source)}/CMakeLists.txt builds no Python module {module}: keep nanobind_add_module")
    _smoke(built[0], module, source)
    return built[0]


def _stage(files: dict[str, bytes], staged: Path) -> bool:
    """Bring the tree's copy of the sources up to date, touching only what differs; whether files came or went."""
    before = {path.relative_to(staged).as_posix(): path for path in staged.rglob("*") if path.is_file()}
    for name, path in before.items():
        if name not in files:
            path.unlink()
    for name, content in files.items():
        path = staged / name
        if name not in before or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return before.keys() != files.keys()


def _configure(tree: Path, toolchain: Toolchain) -> list[str]:
    settings = {
        "CMAKE_MAKE_PROGRAM": toolchain.ninja,
        "CMAKE_CXX_COMPILER": toolchain.compiler,
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_LIBRARY_OUTPUT_DIRECTORY": str(tree / "out"),
        "Python_EXECUTABLE": sys.executable,
    }
    if toolchain.ccache:
        settings["CMAKE_CXX_COMPILER_LAUNCHER"] = toolchain.ccache
    command = [toolchain.cmake, "-G", "Ninja", "-S", str(tree / "source"), "-B", str(tree / "build")]
    return command + [f"-D{name}={value}" for name, value in settings.items()]


def _run(command: list[str], tree: Path, toolchain: Toolchain, source: Path) -> None:
    """Run one step of a build. Raises CourseError with its first errors."""
    ccache = {
        "CCACHE_DIR": os.environ.get("CCACHE_DIR", str(TREES / "ccache")),
        "CCACHE_MAXSIZE": os.environ.get("CCACHE_MAXSIZE", "500M"),
        # `-march=native` means something else on another machine.
        "CCACHE_NAMESPACE": hashlib.sha256(toolchain.identity.encode()).hexdigest()[:16],
    }
    status, output = _finish(command, os.environ | ccache | {"LC_ALL": "C"})
    if status:
        raise CourseError(f"{_show(source)} does not build:\n{summary(output, tree / 'source')}")


def _finish(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Exit status and output; a build that takes too long or is interrupted leaves no compiler running."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, start_new_session=True
        )
        try:
            status = process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            raise CourseError(f"{Path(command[0]).name} did not finish in {_SECONDS} s: is the machine busy?") from None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        return status, output.read()


def _smoke(library: Path, module: str, source: Path) -> None:
    """Load the library in a fresh process and call one function. Raises CourseError in words."""
    command = [sys.executable, "-c", _SMOKE, module, str(library)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SMOKE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise CourseError(f"{_show(source)} was built, but loading it takes more than {_SMOKE_SECONDS} s") from None
    if done.returncode == 0:
        return
    said = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
    if "incompatible function arguments" in done.stderr:
        said = "it does not know MLX's arrays: CMakeLists.txt needs NB_DOMAIN mlx, and nanobind must fit mlx"
    elif "has no attribute 'identity'" in done.stderr:
        said = "it has no function identity(x), which shows that it works: keep it in the bindings"
    elif "undefined symbol: " in said:
        said = f"{_demangled(said.rpartition('undefined symbol: ')[2])} is declared and used, but nowhere defined"
    raise CourseError(f"{_show(source)} was built, but its library does not work: {said}")


def _demangled(symbol: str) -> str:
    """A C++ name as one writes it, where the machine can tell."""
    try:
        done = subprocess.run(["c++filt", symbol], capture_output=True, text=True, timeout=_SMOKE_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return symbol
    return done.stdout.strip() or symbol


def _install(built: Path, destination: Path, module: str) -> Path:
    """Put the library in place in one step: who has the old one loaded keeps it."""
    library = destination / built.name
    with tempfile.TemporaryDirectory(dir=destination, prefix=".new-") as folder:
        copy = Path(folder) / built.name
        shutil.copy(built, copy)
        copy.replace(library)
    for other in _libraries(destination, module):
        if other != library:
            other.unlink()
    return library


def _show(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
