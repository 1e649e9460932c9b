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
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from course.build_errors import summary
from course.build_smoke import problem
from course.build_stamp import Stamp, fingerprint, libraries
from course.errors import CourseError
from course.group import tied
from course.paths import ROOT
from course.toolchain import Toolchain, find_toolchain

TREES = ROOT / ".course" / "build"
SUFFIXES = {".cpp", ".cc", ".c", ".h", ".hpp", ".inc", ".S", ".cmake"}
_SECONDS = 900


def ensure_built(source: Path, destination: Path, module: str, trees: Path | None = None) -> Path:
    """The library of the CMake project `source`, as `module.*.so` in the folder `destination`; built if need be.

    The project must not read files outside of `source`; CMake finds MLX and nanobind by `Python_EXECUTABLE`, which is
    set. The module must hold a function `identity(x: array)`, which the smoke test after a build calls.
    trees: where build trees are kept, if not in `.course/build`.
    Raises CourseError, with the fix or the compiler's first errors, and then leaves an earlier library as it was.
    """
    stamp = Stamp(destination, module)
    toolchain = find_toolchain()
    files = sources(source)
    made_from = fingerprint(files, toolchain, module)
    if library := stamp.fresh(made_from):  # without the lock, since the folder may be one that only others can write
        return library
    with stamp.locked():
        if library := stamp.fresh(made_from):
            return library
        try:
            with _tree(trees or TREES, files, toolchain) as tree:
                built = _build(tree, files, toolchain, module, source)
                library = _install(built, destination, module)
            stamp.note(made_from, library)
        except OSError as error:
            place = error.filename or trees or TREES
            raise CourseError(
                f"cannot build {_show(source)} ({place}: {error.strerror}): make room, or the folder writable"
            ) from None
        return library


def put_built(content: bytes, source: Path, destination: Path, module: str) -> Path:
    """Put a library in place that was built elsewhere from `source`, as `ensure_built` would have."""
    stamp = Stamp(destination, module)
    with stamp.locked(), tempfile.TemporaryDirectory(prefix="tiny-llm-") as folder:
        built = Path(folder) / f"{module}{sysconfig.get_config_var('EXT_SUFFIX')}"
        built.write_bytes(content)
        library = _install(built, destination, module)
        stamp.note(fingerprint(sources(source), find_toolchain(), module), library)
    return library


def is_stale(source: Path, destination: Path, module: str) -> bool:
    """Whether `ensure_built` would have to build. Raises CourseError like it."""
    made_from = fingerprint(sources(source), find_toolchain(), module)
    return Stamp(destination, module).fresh(made_from) is None


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


@contextmanager
def _tree(trees: Path, files: dict[str, bytes], toolchain: Toolchain) -> Iterator[Path]:
    """The build tree for this kind of project, locked: a compiler keeps all cores busy, so builds wait in line."""
    tools = f"{toolchain.identity} {toolchain.ccache}".encode()
    kind = hashlib.sha256(files["CMakeLists.txt"] + tools).hexdigest()[:12]
    tree = trees / kind
    tree.mkdir(parents=True, exist_ok=True)
    with (tree / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield tree


def _build(tree: Path, files: dict[str, bytes], toolchain: Toolchain, module: str, source: Path) -> Path:
    """Compile in `tree` and try the library; returns where it is. Raises CourseError."""
    staged, out = tree / "source", tree / "out"
    named_anew = _stage(files, staged)
    for old in libraries(out, module):
        old.unlink()
    if named_anew or not (tree / "build" / "build.ninja").exists():
        _run(_configure(tree, toolchain), tree, toolchain, source)
    _run([toolchain.cmake, "--build", str(tree / "build")], tree, toolchain, source)
    built = libraries(out, module)
    if len(built) != 1:
        raise CourseError(f"{_show(source)}/CMakeLists.txt builds no Python module {module}: keep nanobind_add_module")
    if wrong := problem(built[0], module):
        raise CourseError(f"{_show(source)} was built, but its library does not work: {wrong}")
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
        "CCACHE_DIR": os.environ.get("CCACHE_DIR", str(tree.parent / "ccache")),
        "CCACHE_BASEDIR": str(tree),  # so that trees in other places find what was compiled in this one
        "CCACHE_MAXSIZE": os.environ.get("CCACHE_MAXSIZE", "500M"),
        # `-march=native` means something else on another machine.
        "CCACHE_NAMESPACE": hashlib.sha256(toolchain.identity.encode()).hexdigest()[:16],
    }
    status, output = _finish(command, os.environ | ccache | {"LC_ALL": "C"})
    if status:
        said = tree / "output.txt"
        said.write_text(output, encoding="utf-8")
        first = summary(output, tree / "source")
        raise CourseError(f"{_show(source)} does not build:\n{first}\n(all that was said: {_show(said)})")


def _finish(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Exit status and output; a build that takes too long or is interrupted leaves no compiler running."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(
            tied(command),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,
        )
        try:
            status = process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            raise CourseError(f"{Path(command[0]).name} did not finish in {_SECONDS} s: is the machine busy?") from None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdin.close()
        output.seek(0)
        return status, output.read()


def _install(built: Path, destination: Path, module: str) -> Path:
    """Put the library in place in one step: who has the old one loaded keeps it."""
    library = destination / built.name
    with tempfile.TemporaryDirectory(dir=destination, prefix=".new-") as folder:
        copy = Path(folder) / built.name
        shutil.copy(built, copy)
        copy.replace(library)
    for other in libraries(destination, module):
        if other != library:
            other.unlink()
    return library


def _show(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
