"""Task regions of C++ and Metal files: found, checked against the registry, and replaced by stubs."""

from pathlib import Path

import pytest
import small_extension

from course import cli
from course.commands import starter as command
from course.curriculum import FileSymbols, load
from course.errors import CourseError
from course.starter import render
from course.starter.regions import bodies_of, regions, replaced, stubbed_source
from course.work.place import Place

CPP = """\
#include <stdexcept>
// Adds.
int add(int a, int b) {
  // begin task: add
  int c = a + b;
  return c;
  // end task: add
}
  // begin task: Sum.eval_cpu
  // end task: Sum.eval_cpu
"""


@pytest.fixture
def course(tmp_path: Path) -> small_extension.KernelCourse:
    return small_extension.make(tmp_path)


def listed(course: small_extension.KernelCourse, *names: str) -> FileSymbols:
    task = load(course.root / "curriculum").task(1, 1, 1)
    return FileSymbols(dict.fromkeys(names, task), set())


def test_regions_and_their_bodies():
    assert {name: (r.first, r.last) for name, r in regions("a.cpp", CPP).items()} == {
        "add": (4, 7),
        "Sum.eval_cpu": (9, 10),
    }
    assert bodies_of("a.cpp", CPP) == {"add": "  int c = a + b;\n  return c;\n", "Sum.eval_cpu": ""}
    assert bodies_of("a.cpp", replaced("a.cpp", CPP, {"add": "  return b + a;\n"}))["add"] == "  return b + a;\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("// begin task: a\n", "a.cpp:1: a has no end"),
        ("// end task: a\n", "a.cpp:1: a ends here, but none is open"),
        ("// begin task: a\n// end task: b\n", "a.cpp:2: b ends here, but a is open"),
        ("// begin task: a\n// begin task: b\n", "a.cpp:2: b begins inside a"),
        ("// begin task: a\n// end task: a\n// begin task: a\n", "a.cpp:3: a is a region already at line 1"),
        ("// begin task a\n", "a.cpp:1: write `// begin task: NAME`"),
        ("int x; // begin task: a\n", "a.cpp:1: write `// begin task: NAME`"),
        ("// begin task: a b\n", "a.cpp:1: write `// begin task: NAME`"),
    ],
)
def test_comments_that_do_not_pair_are_told(text: str, problem: str):
    with pytest.raises(CourseError) as error:
        regions("a.cpp", text)
    assert problem in str(error.value)


def test_the_stub_keeps_the_comments_and_all_other_text(course: small_extension.KernelCourse):
    text = stubbed_source("a.cpp", CPP, listed(course, "add", "Sum.eval_cpu"))
    stub = 'throw std::runtime_error("Week 1 Day 1 Task 1: {} - see book/src/week1-01-one.md#task-1");'
    head = "// This file is yours to edit. Read book/src/week1-01-one.md.\n\n"
    body = CPP.replace("  int c = a + b;\n  return c;\n", f"  {stub.format('add')}\n")
    end = "  // end task: Sum.eval_cpu\n"
    assert text == head + body.replace(end, f"  {stub.format('Sum.eval_cpu')}\n{end}")


def test_a_metal_stub_is_an_error_of_the_preprocessor(course: small_extension.KernelCourse):
    text = stubbed_source("add.metal", "// begin task: add\nout[i] = 1;\n// end task: add\n", listed(course, "add"))
    assert '\n#error "Week 1 Day 1 Task 1: add - see book/src/week1-01-one.md#task-1"\n' in text
    assert "out[i]" not in text


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("a.cpp", CPP.replace("task: add", "task: plus"), '"add" of Week 1 Day 1 Task 1 is not in the file'),
        ("a.cpp", CPP, 'the region "Sum.eval_cpu" is of no task'),
        (
            "a.cpp",
            "// begin task: add\n// end task: add\n",
            "needs `#include <stdexcept>`",
        ),
    ],
)
def test_regions_and_registry_must_agree(course: small_extension.KernelCourse, file: str, text: str, problem: str):
    with pytest.raises(CourseError) as error:
        stubbed_source(file, text, listed(course, "add"))
    assert problem in str(error.value)


def test_a_file_that_marks_tasks_must_be_listed(course: small_extension.KernelCourse):
    course.write("extensions_ref/metal/new.metal", "// begin task: new\n// end task: new\n")
    with pytest.raises(CourseError, match=r"extensions_ref/metal/new\.metal: marks tasks, but the curriculum"):
        render(load(course.root / "curriculum"), course.reference)


def test_a_listed_file_must_exist(course: small_extension.KernelCourse):
    (course.sources / "src/twice.cpp").unlink()
    with pytest.raises(CourseError, match=r"extensions_ref/src/twice\.cpp: the curriculum lists this file"):
        render(load(course.root / "curriculum"), course.reference)


def test_what_a_build_leaves_is_not_part_of_the_starter(course: small_extension.KernelCourse):
    for left in (
        "extensions_ref/build/x.o",
        "tiny_llm_ref/_ext.cpython-311-x86_64-linux-gnu.so",
        "tiny_llm_ref/.built_ext",
    ):
        course.write(left, "built")
    names = render(load(course.root / "curriculum"), course.reference)
    assert not [name for name in names if "built" in name or name.endswith((".o", ".so"))]
    assert "extensions/CMakeLists.txt" in names


@pytest.fixture
def target(course: small_extension.KernelCourse, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `pdm run starter` writes."""
    curriculum = load(course.root / "curriculum")
    monkeypatch.setattr(command, "HERE", Place(course.root / "away", course.root / "other", course.reference))
    monkeypatch.setattr("course.curriculum.load", lambda: curriculum)
    return course.root / "tiny_llm"


def run(target: Path, *arguments: str) -> int:
    return cli.main(["starter", "--target", str(target), *arguments])


def test_the_command_writes_checks_and_backs_up_both_folders(target: Path, capsys: pytest.CaptureFixture):
    kernel = target.parent / "extensions/src/twice.cpp"
    assert run(target) == 0
    assert run(target, "--check") == 0
    fresh = kernel.read_text()
    kernel.write_text("mine\n")
    assert run(target, "--check") == 1
    assert f"{kernel} differs from the reference's starter" in capsys.readouterr().out
    assert run(target) == 2
    assert "extensions/src/twice.cpp" in capsys.readouterr().err
    assert kernel.read_text() == "mine\n"
    assert run(target, "--force") == 0
    assert kernel.read_text() == fresh
    (kept,) = (target.parent / ".course/saved").glob("*/mine/extensions/src/twice.cpp")
    assert kept.read_text() == "mine\n"
    assert (kept.parents[2] / "kernels/cpu.py").is_file()
