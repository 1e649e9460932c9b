"""C++ extensions are built when something changed, quickly the second time, and mistakes are told with their place."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import small_extension

from course import build as building
from course import toolchain
from course.build import ensure_built, is_stale
from course.build_errors import summary
from course.errors import CourseError
from course.paths import ROOT, SRC

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with sources in `extensions` and a library in `pkg`."""
    root = tmp_path_factory.mktemp("built")
    small_extension.make(root).sources.rename(root / "extensions")
    (root / "pkg").mkdir()
    ensure_built(root / "extensions", root / "pkg", "_ext")
    return root


@pytest.fixture
def project(built: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(built, tmp_path / "copy")
    return tmp_path / "copy"


def build(project: Path) -> Path:
    return ensure_built(project / "extensions", project / "pkg", "_ext")


def stale(project: Path) -> bool:
    return is_stale(project / "extensions", project / "pkg", "_ext")


def change(project: Path, old: str, new: str, file: str = "src/twice.cpp") -> None:
    path = project / "extensions" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def run(library: Path, expression: str) -> str:
    code = f"import sys; sys.path.insert(0, {str(library.parent)!r}); import mlx.core as mx, _ext; print({expression})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The build steps taken from now on."""
    taken: list[str] = []
    finish = building._finish

    def noted(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
        taken.append("build" if "--build" in command else "configure")
        return finish(command, environment)

    monkeypatch.setattr(building, "_finish", noted)
    return taken


def test_a_copy_of_sources_and_library_is_up_to_date(project: Path, monkeypatch: pytest.MonkeyPatch):
    taken = steps(monkeypatch)
    assert not stale(project)
    assert run(build(project), "_ext.twice(mx.array([1.5])).tolist()") == "[3.0]"
    assert taken == []


def test_a_changed_source_is_compiled_again_and_nothing_is_configured(project: Path, monkeypatch: pytest.MonkeyPatch):
    taken = steps(monkeypatch)
    change(project, "2 * x[i]", "3 * x[i]")
    assert stale(project)
    assert run(build(project), "_ext.twice(mx.array([1.5])).tolist()") == "[4.5]"
    assert taken == ["build"]
    assert not stale(project)


@pytest.mark.parametrize("file", ["metal/one.metal", "notes.md", "build/x.cpp", ".hidden/x.cpp"])
def test_other_files_do_not_matter(project: Path, file: str):
    path = project / "extensions" / file
    path.parent.mkdir(exist_ok=True)
    path.write_text("anything")
    assert not stale(project)


def test_a_library_from_elsewhere_is_not_trusted(project: Path):
    library = build(project)
    library.write_bytes(library.read_bytes() + b"x")
    assert stale(project)
    library.unlink()
    assert stale(project)
    assert build(project) == library
    assert not stale(project)


def test_another_compiler_or_mlx_makes_it_stale(project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(toolchain, "_cpu", lambda: "another machine")
    assert stale(project)


def test_a_compiler_error_names_file_line_and_text_and_the_old_library_stays(project: Path):
    library = build(project)
    before = library.read_bytes()
    change(project, "2 * x[i]", "2 * z[i]")
    with pytest.raises(CourseError) as error:
        build(project)
    where, text, said = str(error.value).split("\n")
    assert where.endswith("extensions does not build:")
    assert text.startswith("src/twice.cpp:7: ")
    assert "z" in text
    assert ".course" not in text
    full = Path(said.removeprefix("(all that was said: ").removesuffix(")"))
    assert "twice.cpp:7:" in (ROOT / full).read_text()
    assert library.read_bytes() == before
    change(project, "2 * z[i]", "2 * x[i]")
    assert not stale(project)


def test_a_function_that_is_nowhere_defined_is_named(project: Path):
    change(project, "void twice(", "void twise(")
    with pytest.raises(CourseError, match=r"its library does not work: twice\(float const\*.*is declared and used"):
        build(project)


def test_bindings_without_the_smoke_function_are_told(project: Path):
    change(project, '"identity"', '"same"', "src/bindings.cpp")
    with pytest.raises(CourseError, match=r"no function identity\(x\)"):
        build(project)


def test_a_mistake_in_cmake_is_told(project: Path):
    path = project / "extensions/CMakeLists.txt"
    path.write_text("cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES NONE)\nfind_packag(MLX)\n")
    with pytest.raises(CourseError, match=r'CMakeLists.txt:3: Unknown CMake command "find_packag"'):
        build(project)
    path.unlink()
    with pytest.raises(CourseError, match=r"holds no CMakeLists\.txt"):
        build(project)


def test_builds_of_one_library_at_the_same_time_wait_for_each_other(project: Path):
    change(project, "2 * x[i]", "5 * x[i]")
    code = (
        "import sys; from pathlib import Path; from course.build import ensure_built; "
        "ensure_built(*map(Path, sys.argv[1:]), '_ext')"
    )
    command = [sys.executable, "-c", code, project / "extensions", project / "pkg"]
    runs = [subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(SRC)}) for _ in range(3)]
    assert [process.wait(120) for process in runs] == [0, 0, 0]
    assert run(build(project), "_ext.twice(mx.array([1.0])).tolist()") == "[5.0]"


@pytest.mark.parametrize(
    ("mlx", "nanobind", "fits"),
    [
        ("0.32.4", "3.1.0", True),
        ("0.32.4", "3.0.1", True),
        ("0.32.4", "2.15.0", False),
        ("0.32.2", "2.15.0", True),
        ("0.32.2", "3.1.0", False),
        ("0.99.0", "9.0.0", True),
    ],
)
def test_the_pair_of_mlx_and_nanobind(mlx: str, nanobind: str, fits: bool):
    if fits:
        toolchain.check_pair(mlx, nanobind)
    else:
        with pytest.raises(CourseError, match=f"mlx {mlx} works with nanobind .* but {nanobind} is installed"):
            toolchain.check_pair(mlx, nanobind)


def test_a_missing_compiler_is_told_with_its_fix(project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CourseError, match=r"no C\+\+ compiler found .*apt install g\+\+.*xcode-select"):
        stale(project)
    monkeypatch.setenv("CXX", "g++-99")
    with pytest.raises(CourseError, match=r"CXX=g\+\+-99 is no program"):
        stale(project)


def test_a_build_tree_that_cannot_be_written_is_told(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(building, "TREES", tmp_path / "file" / "trees")
    change(project, "2", "3")
    with pytest.raises(CourseError, match=r"cannot build .*extensions \(.*trees.*: Not a directory\)"):
        build(project)


def test_a_missing_cmake_is_told_with_its_fix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CourseError, match="cmake is missing: `pdm install`"):
        toolchain.find_program("cmake")


def test_errors_in_a_header_name_the_line_that_led_there():
    output = """
In file included from /tree/source/src/a.cpp:1:
/usr/include/vector: In instantiation of 'class std::vector<void>':
/tree/source/src/a.cpp:9:18:   required from here
/usr/include/c++/12/bits/stl_vector.h:401:7: error: forming reference to void
/tree/source/src/a.cpp:12:1: error: 'y' was not declared
/tree/source/src/a.cpp:12:1: error: 'y' was not declared
/tree/source/src/b.cpp:3:9: fatal error: b.h: No such file or directory
/tree/source/src/c.cpp:4:9: error: one more
"""
    assert summary(output, Path("/tree/source")).splitlines() == [
        "/usr/include/c++/12/bits/stl_vector.h:401: forming reference to void (from src/a.cpp:9)",
        "src/a.cpp:12: 'y' was not declared",
        "src/b.cpp:3: b.h: No such file or directory",
        "and 1 more",
    ]
    assert summary("something\nelse\n", Path("/tree/source")) == "something\nelse"


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_build_that_is_ended_leaves_no_compiler(tmp_path: Path, end: signal.Signals):
    """Neither the program that runs, nor what it has started."""
    slow = f"sleep 60 & echo $! $$ > {shlex.quote(str(tmp_path))}/ids.new; mv ids.new ids; wait"
    code = f"from course.build import _finish; _finish(['sh', '-c', {slow!r}], dict(__import__('os').environ))"
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(SRC)}) as one:
        _until(lambda: (tmp_path / "ids").exists())
        one.send_signal(end)
        one.wait(10)
    for pid in map(int, (tmp_path / "ids").read_text().split()):
        _until(lambda pid=pid: _has_ended(pid))


def _has_ended(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def _until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_build_step_gives_its_status_and_output():
    assert building._finish(["sh", "-c", "read line; echo said; echo '$a b' >&2; exit 7"], dict(os.environ)) == (
        7,
        "said\n$a b\n",
    )
