"""Days with C++: the library is built for them, they run in a child, and every way to fail is told in words."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import small_extension
from small_extension import KernelCourse

from course import cli
from course import curriculum as registry
from course.alternatives import changed, problem_of, run_alternative
from course.alternatives import verdict as alternative_verdict
from course.curriculum import Curriculum
from course.errors import CourseError
from course.gates import starter_problems
from course.mutants import Mutant, problems_of, run_mutant, verdict
from course.mutation_score import changes_of
from course.scratch import Report, grade, scratch
from course.starter import generate

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KernelCourse]:
    root = tmp_path_factory.mktemp("kernels")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "TESTS", root / "tests_refsol")
        yield small_extension.make(root)


@pytest.fixture(scope="module")
def curriculum(course: KernelCourse) -> Curriculum:
    return registry.load(course.root / "curriculum")


@pytest.fixture(scope="module")
def graded(course: KernelCourse, curriculum: Curriculum) -> Callable[..., Report]:
    """Grades a copy of the reference in which `old` is `new` in one of the C++ files."""

    def run(old: str = "", new: str = "", file: str = "src/twice.cpp", day: int = 1) -> Report:
        with scratch(course.reference) as package:
            path = package.parent / "extensions_ref" / file
            assert old in path.read_text()
            path.write_text(path.read_text().replace(old, new))
            return grade(package, [curriculum.day(1, day).tests], *course.options)

    return run


def kinds(report: Report) -> list[str]:
    return [result.kind for result in report.results]


def test_the_reference_passes_and_so_does_a_day_on_top_of_it(graded: Callable[..., Report]):
    assert kinds(graded()) == ["passed"] * 3
    assert kinds(graded(day=2)) == ["passed"]


def test_a_wrong_kernel_fails_with_its_likely_mistake(graded: Callable[..., Report]):
    report = graded("2 * x[i]", "3 * x[i]")
    assert kinds(report) == ["failed"] * 3
    assert "it was added to itself once more" in report.results[0].text


def test_a_compiler_error_fails_every_case_with_the_place(graded: Callable[..., Report]):
    report = graded("2 * x[i]", "2 * z[i]")
    assert kinds(report) == ["failed"] * 3
    assert "extensions_ref does not build:\nsrc/twice.cpp:7: " in report.results[0].text
    assert kinds(graded("2 * x[i]", "2 * z[i]", day=2)) == ["failed"]


def test_stubs_stay_to_do_where_the_rest_does_not_compile(graded: Callable[..., Report]):
    stub = 'throw std::runtime_error("Week 1 Day 1 Task 1: twice - see book/src/week1-01-one.md#task-1") $'
    report = graded("for (size_t i = 0; i < n; ++i) y[i] = 2 * x[i];", stub)
    assert kinds(report) == ["todo", "todo", "failed"]
    assert "does not build" in report.output.partition("Week 1 Day 1")[0]  # told before the tasks, which are all to do


def test_an_exception_of_the_kernel_is_shown_as_it_is(graded: Callable[..., Report]):
    report = graded("y[i] = 2 * x[i];", 'throw std::runtime_error("size is odd");')
    assert kinds(report) == ["failed"] * 3
    assert "RuntimeError: size is odd" in report.results[0].text


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("*(volatile int*)8 = 1;", "signal SIGSEGV, it used memory that is not its own"),
        ("std::terminate();", "signal SIGABRT, C++ gave up"),
    ],
)
def test_a_crash_is_one_failed_case(graded: Callable[..., Report], line: str, words: str):
    report = graded("y[i] = 2 * x[i];", f"if (n == 5) {{ {line} }} else y[i] = 2 * x[i];")
    assert kinds(report) == ["passed", "failed", "passed"]
    assert words in report.results[1].text


def test_an_endless_loop_is_cut_off(course: KernelCourse, graded: Callable[..., Report]):
    tests = course.root / "tests_refsol/week_1/test_day_1.py"
    before = tests.read_text()
    tests.write_text(before.replace("size=5)]", "size=5)], timeout=0.5"))
    report = graded("y[i] = 2 * x[i];", "{ for (volatile int j = 0; n == 5; ++j) {} y[i] = 2 * x[i]; }")
    tests.write_text(before)
    assert kinds(report) == ["passed", "failed", "passed"]
    assert "no result within 0.5 s" in report.results[1].text


def test_the_starter_builds_as_generated_and_earns_nothing(
    course: KernelCourse, curriculum: Curriculum, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    def graded_starter(package: Path, tests: list[Path], **options: float) -> Report:
        return grade(package, tests, *course.options, **options)

    monkeypatch.setattr("course.gates.REFERENCE", course.reference)
    monkeypatch.setattr("course.gates.grade", graded_starter)
    assert starter_problems(curriculum, tmp_path) == []
    text = (tmp_path / "extensions/src/twice.cpp").read_text()
    assert text.startswith("// This file is yours to edit. Read book/src/week1-01-one.md.\n\n#include")
    assert 'throw std::runtime_error("Week 1 Day 1 Task 1: twice - see book/src/week1-01-one.md#task-1");' in text
    assert (tmp_path / "extensions/src/twice.h").read_bytes() == (course.sources / "src/twice.h").read_bytes()


def test_one_task_done_leaves_the_other_to_do(course: KernelCourse, curriculum: Curriculum, tmp_path: Path):
    generate(curriculum, course.reference, tmp_path / "tiny_llm")
    shutil.copy(course.sources / "src/twice.cpp", tmp_path / "extensions/src/twice.cpp")
    report = grade(tmp_path / "tiny_llm", [curriculum.day(1, 1).tests], *course.options)
    assert kinds(report) == ["blocked", "blocked", "todo"]
    assert "  write  src/extensions/src/bindings.cpp\n" in report.output
    report = grade(tmp_path / "tiny_llm", [curriculum.day(1, 2).tests], *course.options)
    assert kinds(report) == ["todo"]


def test_mutants_may_change_extension_files(course: KernelCourse, curriculum: Curriculum):
    day = curriculum.day(1, 1)
    fields = {"name": "thrice", "task": 1, "file": "extensions/src/twice.cpp", "old": "2 * x[i]", "new": "3 * x[i]"}
    mutant = Mutant(**fields, message="it was added to itself once more", killer="TwiceDoubles")
    assert "thrice" not in "\n".join(problems_of(day, [mutant], course.reference))
    report = run_mutant(day, mutant, "--case", "TwiceDoubles", *course.options, reference=course.reference)
    assert verdict(mutant, report) is None


def test_alternatives_replace_regions_or_whole_files(course: KernelCourse, curriculum: Curriculum):
    path = course.root / "alternatives/day_1_a.py"
    body = "for (const float* end = x + n; x != end; ++x) *y++ = *x + *x;"
    region = f"// begin task: twice\n{body}\n// end task: twice\n"
    text = f"// Pointers.\n// file: extensions/src/twice.cpp\n{region}"
    course.write("alternatives/day_1_a.cpp", text)
    course.write("alternatives/day_1_a.py", "# file: kernels/more.py\nEXTRA = 1\n")
    assert problem_of(path, course.reference) is None
    report = run_alternative(curriculum.day(1, 1), path, *course.options, reference=course.reference)
    assert alternative_verdict(report) is None
    before = (course.sources / "src/twice.cpp").read_text()
    assert changed("extensions/src/twice.cpp", before, region).count(body) == 1
    assert "2 * x[i]" not in changed("extensions/src/twice.cpp", before, region)
    assert changed("extensions/src/twice.cpp", before, "// all of it\n") == "// all of it\n"
    with pytest.raises(CourseError, match="'int x;' is outside of the section's regions"):
        changed("extensions/src/twice.cpp", before, f"int x;\n{region}")
    course.write("alternatives/day_1_a.cpp", text.replace("task: twice", "task: thrice"))
    assert "has no region thrice: choose from twice" in problem_of(path, course.reference)


def test_automatic_mutants_leave_extensions_alone(course: KernelCourse, curriculum: Curriculum):
    assert changes_of(curriculum.day(1, 1), course.reference) == []


def test_the_command_builds_says_so_and_tells_mistakes(
    course: KernelCourse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path
):
    shutil.copytree(course.sources, tmp_path / "extensions_ref")
    shutil.copytree(course.reference, tmp_path / "tiny_llm_ref")
    monkeypatch.setattr("course.paths.SRC", tmp_path)
    monkeypatch.setattr("course.paths.ROOT", tmp_path)
    command = ["build-ext", "--solution", "tiny_llm_ref"]
    assert cli.main(command) == 0
    assert "building extensions_ref" in capsys.readouterr().out
    assert cli.main(command) == 0
    assert capsys.readouterr().out.endswith(": up to date\n")
    (tmp_path / "extensions_ref/src/twice.cpp").write_text("int x\n")
    assert cli.main(command) == 2
    assert "does not build:\nsrc/twice.cpp:1: expected" in capsys.readouterr().err
    (tmp_path / "extensions_ref/CMakeLists.txt").unlink()
    assert cli.main(command) == 2
    assert "holds no CMakeLists.txt" in capsys.readouterr().err
