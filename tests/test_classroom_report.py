"""What a class adds up to: numbers in all files, the table, the plots, and submissions that are alike."""

import csv
import json
from io import StringIO
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from classroom import Class
from rich.console import Console

from course.classroom import fingerprint
from course.classroom.plots import draw
from course.classroom.report import (
    Assigned,
    ClassReport,
    StudentLine,
    TaskPoints,
    day_lines,
    mistake_lines,
    task_lines,
)
from course.classroom.similar import LEAST_RUNS, find_similar
from course.classroom.summary import markdown
from course.classroom.table import print_table
from course.paths import TESTS

TASKS = [Assigned("1.1.1", "Softmax", 10.0, "Attention"), Assigned("1.1.2", "Linear", 5.0, "Attention")]
TASKS += [Assigned("2.1.1", "A kernel with $costs$", 20.0, "Kernels")]


def _student(name: str, *tasks: TaskPoints, **more: object) -> StudentLine:
    points = sum(task.points for task in tasks)
    found = dict(zip([task.key for task in TASKS], tasks, strict=False))
    line = {"points": points, "final": points, "ended": "graded", "submission": name} | more
    return StudentLine(id=name.lower(), name=name, tasks=found, **line)


def _report(students: list[StudentLine]) -> ClassReport:
    there = [student for student in students if student.submission]
    return ClassReport(
        title="Serving | 2026",
        graded="2026-10-06 10:00+02:00",
        version="1",
        max_points=35.0,
        handed_in=len(there),
        mean=1.0,
        median=2.0,
        students=tuple(students),
        days=day_lines(TASKS, students),
        tasks=task_lines(TASKS, students),
        mistakes=mistake_lines(TASKS, students),
    )


DONE, TODO = TaskPoints(10.0, "done"), TaskPoints(0.0, "to do")
FAILING = TaskPoints(0.0, "failing", ("no maximum", "wrong axis"))
STUDENTS = [
    _student("Ada", DONE, TaskPoints(5.0, "done"), TaskPoints(14.0, "done")),
    _student("Ben", FAILING, TODO, TODO, days_late=2, final=0.0),
    _student("Cem", FAILING, TaskPoints(5.0, "done"), TaskPoints(0.0, "failing", ("no maximum",))),
    _student("Dee", submission="", ended="no submission", problem="nothing was handed in"),
    _student("Eve", ended="failed", problem="the grader ended with signal 9"),
]


def test_sums_count_those_who_handed_in() -> None:
    softmax, linear, kernel = task_lines(TASKS, STUDENTS)
    assert (softmax.done, softmax.partly, softmax.failing, softmax.todo, softmax.mean) == (1, 0, 2, 1, 2.5)
    assert (linear.done, linear.partly, linear.failing, linear.todo, linear.mean) == (2, 0, 0, 2, 2.5)
    assert (kernel.done, kernel.partly, kernel.failing, kernel.todo, kernel.mean) == (0, 1, 1, 2, 3.5)
    first, second = day_lines(TASKS, STUDENTS)
    assert (first.key, first.title, first.points) == ("1.1", "Attention", 15.0)
    assert (first.done, first.partly, first.failing, first.todo, first.mean) == (1, 1, 1, 1, 5.0)
    assert (second.done, second.partly, second.failing, second.todo) == (0, 1, 1, 2)


def test_a_mistake_counts_once_for_each_student_and_the_most_common_comes_first() -> None:
    found = [(line.key, line.mistake, line.students) for line in mistake_lines(TASKS, [*STUDENTS, STUDENTS[1]])]
    assert found == [("1.1.1", "no maximum", 2), ("1.1.1", "wrong axis", 2), ("2.1.1", "no maximum", 1)]


@pytest.mark.parametrize("width", [40, 80, 100, 200])
def test_the_table_fits_the_window_and_says_why(width: int) -> None:
    out = StringIO()
    long = _student("Jörg Müller-Lüdenscheidt von Hohenstein", DONE, listed=False)
    print_table(Console(file=out, width=width), _report([*STUDENTS, long]))
    lines = out.getvalue().splitlines()
    table = lines[: next(number for number, line in enumerate(lines) if line.startswith("Eve: "))]
    assert max(map(len, table)) <= width
    assert "Eve: the grader ended with signal 9" in lines
    assert ("week 1" in lines[0]) == (width >= 80)
    assert ("not in the roster" in out.getvalue()) == (width > 40)


def test_the_summary_is_markdown_that_names_cannot_break() -> None:
    evil = _student("<b>x</b> | [y](z) *w*", DONE)
    text = "\n".join(markdown(_report([*STUDENTS, evil])))
    assert "# Serving \\| 2026: results" in text
    assert "| \\<b\\>x\\</b\\> \\| \\[y\\](z) \\*w\\* |" in text
    assert "5 students handed in, 1 did not" in text
    assert "- 1.1.1 Softmax: no maximum (2)" in text


def test_files_of_a_students_own_that_were_not_graded_are_named() -> None:
    own = _student("Ada", FAILING, ignored=("model/my_util.py",))
    two = _student("Ben", FAILING, ignored=("a.py", "b.py"), ended="incomplete", problem="why")
    out = StringIO()
    print_table(Console(file=out, width=100), _report([own, two, _student("Cem", DONE)]))
    rows = [line.rstrip() for line in out.getvalue().splitlines()]
    assert rows[1].endswith("  1 file not graded")
    assert rows[2].endswith("  incomplete, 2 files not graded")
    assert "Ada: 1 file not graded: model/my_util.py\n" in out.getvalue()
    assert out.getvalue().count("extra_files") == 1
    text = "\n".join(markdown(_report([own, two])))
    assert "| 1 file not graded: model/my\\_util.py |" in text
    assert "| incomplete: why; 2 files not graded: a.py, b.py |" in text


@pytest.mark.parametrize("students", [[], STUDENTS[:1], STUDENTS, STUDENTS[3:]])
def test_every_plot_is_drawn_as_svg_and_png(tmp_path: Path, students: list[StudentLine]) -> None:
    (tmp_path / "tasks-week-9.svg").write_text("of an earlier run")
    draw(tmp_path, _report(students))
    names = {"scores", "days", "tasks-week-1", "tasks-week-2"}
    names |= {"mistakes-week-1", "mistakes-week-2"} if len(students) == 5 else set()
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.{kind}" for name in names for kind in ("svg", "png")}
    for name in names:
        width = ElementTree.parse(tmp_path / f"{name}.svg").getroot().get("width")
        assert width == "576pt"
        assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"


def test_all_files_and_json_tell_the_same_numbers(tmp_path: Path) -> None:
    room = Class(tmp_path)
    for name, text in (("Jörg", "points 10 7.5"), ("=cmd|x", "points 0 2.25"), ("zero", "points 0 0")):
        room.submit(name, text)
    room.write("roster.csv", "id;name;folder\n1;Jörg M.;Jörg\n2;Ann;=cmd|x\n3;Zed;zero\n4;Abe;\n".encode("cp1252"))
    done = room.run("--json", "--roster", tmp_path / "roster.csv")
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert report == room.report
    assert [line["name"] for line in report["students"]] == ["Abe", "Ann", "Jörg M.", "Zed"]
    assert [line["final"] for line in report["students"]] == [0.0, 2.25, 17.5, 0.0]
    assert (report["mean"], report["median"], report["max_points"], report["handed_in"]) == (6.58, 2.25, 20.0, 3)
    assert "[3/3]" in done.stderr, "progress goes where no program reads"
    with (room.out / "class.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["name"], row["final"], row["1.1.1"], row["1.1.2"]) for row in rows] == [
        ("Abe", "0.0", "0.0", "0.0"),
        ("Ann", "2.25", "0.0", "2.25"),
        ("Jörg M.", "17.5", "10.0", "7.5"),
        ("Zed", "0.0", "0.0", "0.0"),
    ]
    assert rows[1]["submission"] == "'=cmd|x", "no cell is a formula"
    assert "1.1.1,A stable softmax,10.0,3.33,1,0,2,0" in (room.out / "tasks.csv").read_text("utf-8-sig")
    assert "1.1.1,A stable softmax,no maximum subtracted,2" in (room.out / "mistakes.csv").read_text("utf-8-sig")
    assert "| Jörg M\\. |" in (room.out / "summary.md").read_text("utf-8").replace("M.", "M\\.")
    assert "pdm install -G class" in done.stderr, "the tests' class runs without Matplotlib"


def _alternatives(letter: str) -> dict[str, bytes]:
    folder = TESTS / "week_1" / "alternatives"
    return {f"model/day{day}.py": (folder / f"day_{day}_{letter}.py").read_bytes() for day in (1, 2, 3, 4, 5)}


def test_copied_code_is_noticed_also_under_other_names_and_own_work_is_not() -> None:
    mine, yours = _alternatives("a"), _alternatives("b")
    renamed = {}
    for name, content in mine.items():
        text = content.decode().replace("scores", "quux").replace("    return", "    # my own work\n\n    return")
        renamed[name] = text.encode()
    (pair,) = find_similar({"Ada": mine, "Ben": yours, "Eve": renamed}, [])
    assert (pair.first, pair.second) == ("Ada", "Eve")
    assert pair.share > 0.95
    assert set(pair.files) <= set(mine)
    assert find_similar({"Ada": mine, "Eve": renamed}, [mine]) == (), "given code is nobody's"
    assert find_similar({str(number): mine for number in range(20)}, []) == (), "what all have says nothing"
    half = dict(list(mine.items())[:2]) | dict(list(yours.items())[2:])
    assert {line.second for line in find_similar({"Ada": mine, "Half": half}, [])} <= {"Half"}
    assert LEAST_RUNS > 0
    assert find_similar({"Ada": {}, "Ben": {"model/x.py": b"\xff\x00(((" * 9}}, []) == ()


def test_the_version_of_the_course_is_what_decides_a_grade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "classroom" / ".hidden"  # folders above the course decide nothing
    (root / "week_1" / "mutants").mkdir(parents=True)
    monkeypatch.setattr(fingerprint, "_GRADED_BY", (root,))
    versions = []
    for name, decides in (("a.py", True), ("week_1/b.metal", True), ("week_1/mutants/c.py", False), ("d.so", False)):
        (root / name).write_text("x")
        fingerprint.code_version.cache_clear()
        versions.append((fingerprint.code_version(), decides))
    fingerprint.code_version.cache_clear()
    assert [one[0] != other[0] for one, other in pairwise(versions)] == [decides for _, decides in versions[1:]]
