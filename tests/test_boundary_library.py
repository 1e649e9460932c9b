"""The C++ of a submission is compiled and tried behind the boundary; the grader gets a file that it never loads."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import small_extension
from small_extension import KernelCourse

from course import curriculum as registry
from course.boundary import Boundary, Limits, problem
from course.boundary.library import build_behind
from course.build import is_stale
from course.errors import CourseError
from course.paths import EXTENSION, extension_folder
from course.scratch import grade, scratch

pytestmark = pytest.mark.skipif(
    shutil.which("c++") is None or problem("namespaces") is not None, reason="needs a C++ compiler and namespaces"
)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KernelCourse]:
    root = tmp_path_factory.mktemp("kernels")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "TESTS", root / "tests_refsol")
        yield small_extension.make(root)


@pytest.fixture
def package(course: KernelCourse) -> Iterator[Path]:
    """A copy without a library, that a user of the boundary may read."""
    with scratch(course.reference) as copy:
        copy.parent.chmod(0o755)
        for built in copy.glob(f"{EXTENSION}.*so"):
            built.unlink()
        yield copy


def change(package: Path, name: str, old: str, new: str) -> None:
    path = extension_folder(package) / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def boundary(package: Path, limits: Limits = Limits()) -> Boundary:  # noqa: B008 - it cannot be changed
    return Boundary(str(package.parent), "namespaces", limits)


def test_kernel_day_is_graded_behind_the_boundary(course: KernelCourse, package: Path, tmp_path: Path):
    described = tmp_path / "boundary.json"
    boundary(package).write(described)
    tests = registry.load(course.root / "curriculum").day(1, 1).tests
    report = grade(package, [tests], *course.options, "--boundary", str(described))
    assert [result.kind for result in report.results] == ["passed"] * 3, report.output
    assert not is_stale(extension_folder(package), package, EXTENSION)


def test_build_file_that_attacks_changes_nothing_outside(package: Path, tmp_path: Path):
    victim = tmp_path / "victim.txt"
    victim.write_text("mine")
    lines = f'file(APPEND "{victim}" "changed")\nexecute_process(COMMAND sh -c "sleep 60 & kill -9 -1")\n'
    change(package, "CMakeLists.txt", "project(small", f"{lines}project(small")
    with pytest.raises(CourseError, match=r"cannot be built|does not build"):
        build_behind(boundary(package), package)
    assert victim.read_text() == "mine"


def test_library_that_attacks_when_it_is_loaded_is_not_loaded_here(package: Path):
    mine = f"getpid() == {os.getpid()} || getppid() == {os.getpid()}"
    ends = f"struct Ends {{ Ends() {{ if ({mine}) _exit(0); abort(); }} }} ends;"
    included = '#include "twice.h"'
    change(package, "src/twice.cpp", included, f"{included}\n#include <cstdlib>\n#include <unistd.h>\n{ends}\n")
    with pytest.raises(CourseError, match="its library does not work"):
        build_behind(boundary(package), package)
    assert is_stale(extension_folder(package), package, EXTENSION)


def test_build_that_does_not_end_is_stopped(package: Path):
    change(package, "CMakeLists.txt", "project(small", "execute_process(COMMAND sleep 600)\nproject(small")
    with pytest.raises(CourseError, match="no result within 2 s"):
        build_behind(boundary(package, Limits(build_seconds=2)), package)
