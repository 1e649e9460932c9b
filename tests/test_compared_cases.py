"""`compare` on a small course: what is said of packages that are right, wrong, slow, large, or do not end well."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from conftest import SmallCourse

from course import cli
from course.compared import compare as whole
from course.compared import measure
from course.compared.agreement import Agreement
from course.compared.comparison import CaseComparison, Comparison, Measured, Spread
from course.compared.report import show
from course.compared.words import summary
from course.curriculum import load
from course.errors import CourseError

TESTS = '''
import time
import mlx.core as mx
import numpy as np
from course.case import case
from course.compare import close, same

def basics(solution):
    return solution.module("model.basics")

@case(task=1, params=[{"n": 3}, {"n": 9000}], timeout=4.0)
class Doubles:
    """Twice x."""
    def inputs(rng, n): return {"x": mx.array(rng.normal(size=n))}
    def observe(solution, inputs): return {"y": basics(solution).first(inputs["x"]), "when": time.time()}
    def verify(inputs, got): close(got["y"], 2 * np.array(inputs["x"]), tol=1e-3)

@case(task=1, timeout=4.0)
class Grows:
    """Whatever is made up."""
    def observe(solution, inputs): return basics(solution).linear(inputs)
    def check(observe):
        for n in (1, 5, 40, 7):
            same(observe(list(range(n))), [2 * i for i in range(n)])

@case(task=2, timeout=0.5)
class Second:
    """One of several answers."""
    def inputs(rng): return 3
    def observe(solution, n): return basics(solution).second(n)
    def verify(n, got): assert got in (n, n + 1), "neither n\\nnor n + 1"
'''
REFERENCE = """
import mlx.core as mx
def first(x): return x * 2
def linear(x): return [i + i for i in x]
def second(n): return n
"""


@pytest.fixture
def course(small_course: SmallCourse, monkeypatch: pytest.MonkeyPatch) -> SmallCourse:
    """The reference and the cases; each test writes its own learner's package."""
    small_course.package("tiny_llm_ref", basics=REFERENCE)
    small_course.tests(TESTS)
    monkeypatch.setattr("course.curriculum.TESTS", small_course.root / "tests_refsol")
    monkeypatch.setattr(sys, "path", [str(small_course.root), *sys.path])
    monkeypatch.setattr(measure, "READING", 0.002)
    return small_course


def compared(course: SmallCourse, text: str, task: int = 1, case: str | None = None, repeat: int = 2) -> Comparison:
    course.package("tiny_llm", basics="import mlx.core as mx\n" + text)
    curriculum = load(course.root / "curriculum")
    return whole.compare(curriculum, curriculum.task(1, 1, task), repeat, case)


def only(course: SmallCourse, text: str, case: str, task: int = 1, repeat: int = 2) -> CaseComparison:
    (found,) = compared(course, text, task, case, repeat).cases
    return found


def test_the_same_code_is_equal(course: SmallCourse) -> None:
    found = compared(course, REFERENCE)
    assert (found.task, found.state, found.emulated) == ("1.1.1", "passes", False)
    assert [case.name for case in found.cases] == ["Doubles", "Grows"]
    doubles, grows = found.cases
    assert (doubles.passed, doubles.inputs, doubles.measured_on) == (2, 2, 1)
    assert doubles.agreement.kind == grows.agreement.kind == "equal"
    assert doubles.agreement.left_out >= 1, "the clock differs from run to run"
    assert doubles.learner.mlx_bytes == doubles.reference.mlx_bytes >= 9000 * 4
    assert grows.learner.mlx_bytes == 0 < grows.learner.python_bytes
    assert found.summary[0] == "your values are right, and equal to the reference's"
    again = msgspec.json.decode(msgspec.json.encode(found), type=Comparison)
    assert again == found


def test_rounding_is_told_and_allowed(course: SmallCourse) -> None:
    found = only(course, "def first(x): return x * 2 + 1e-6", "Doubles")
    assert (found.state, found.agreement.kind) == ("passes", "close")
    assert 0 < found.agreement.largest < 1e-5


def test_wrong_values_are_placed(course: SmallCourse) -> None:
    found = compared(course, "def first(x): return x + mx.array([0, 1, 0])[:x.size] * x[:1] if x.size == 3 else 2 * x")
    doubles = found.cases[0]
    assert (doubles.state, doubles.passed, doubles.inputs) == ("fails", 1, 2)
    assert "values are wrong" in doubles.problem
    assert doubles.agreement.kind == "different"
    assert doubles.agreement.where.startswith("values['y'] at [0]: ")
    assert doubles.learner is not None, "wrong code is measured too"


def test_other_shapes_and_dtypes_are_named(course: SmallCourse) -> None:
    found = only(course, "def first(x): return (x * 2).astype(mx.float16)[None]", "Doubles")
    assert found.agreement.where.startswith("values['y']: float16 (1, 3), reference float32 (3,)")


def test_another_right_answer_passes_and_is_told(course: SmallCourse) -> None:
    found = compared(course, "def second(n): return n + 1", task=2)
    assert found.state == "passes"
    assert found.summary[0].endswith("they differ from the reference's where both are allowed: values: 4, reference 3")


def test_more_time_is_told(course: SmallCourse) -> None:
    slow = "import time\ndef linear(x):\n    time.sleep(0.003)\n    return [2 * i for i in x]"
    found = only(course, slow, "Grows", repeat=3)
    assert found.slower > 5
    assert found.ratio.least <= found.ratio.median <= found.ratio.most
    assert "times slower than the reference in Grows" in "".join(compared(course, slow, case="Grows").summary)


def test_more_memory_is_told(course: SmallCourse) -> None:
    large = "def first(x):\n    y = mx.concatenate([x] * 20)\n    mx.eval(y)\n    return y[:x.size] * 2"
    found = compared(course, large, case="Doubles")
    (case,) = found.cases
    assert case.learner.mlx_bytes > 10 * case.reference.mlx_bytes
    assert any("times as much as the reference" in line for line in found.summary)


@pytest.mark.parametrize(
    ("text", "state", "said"),
    [
        (
            "def second(n): raise NotImplementedError('Week 1 Day 1 Task 2: second - see book/x.md#1')",
            "to do",
            "Task 2",
        ),
        ("def second(n): return 1 / 0", "stops", "ZeroDivisionError"),
        ("import os\ndef second(n): os._exit(0)", "stops", "your code ended its process"),
        ("def second(n):\n    while True: pass", "stops", "no result within 0.5 s"),
        ("def second(n): return object()", "stops", "cannot copy"),
        ("def second(n: return 1", "stops", "SyntaxError"),
        ("import sys\ndef second(n): sys.exit(0)", "stops", "your code ended the program"),
        ("def second(n): return mx.softmax(mx.array([1.0]))", "stops", "softmax is what this day teaches"),
        ("def second(n):\n    import tiny_llm_ref\n    return n", "stops", "cannot import tiny_llm_ref"),
        ("def second(n): return n + 7", "fails", "neither n"),
    ],
)
def test_code_that_does_not_do_is_one_line(course: SmallCourse, text: str, state: str, said: str) -> None:
    found = only(course, text, "Second", task=2)
    assert found.state == state
    assert said in found.problem
    assert "\n" not in found.problem
    assert (found.learner is None) == (state != "fails")
    assert found.reference.seconds.median > 0, "the reference is shown alone"


def test_endless_loops_are_waited_for_twice_only(course: SmallCourse) -> None:
    course.tests(TESTS.replace("@case(task=2, timeout=0.5)", "@case(task=2, timeout=0.3, params=[{}] * 5)"))
    asked = course.root / "asked"
    endless = f"def second(n):\n    open({str(asked)!r}, 'a').write('x')\n    while True: pass"
    found = only(course, endless, "Second", task=2)
    assert (found.passed, found.inputs) == (0, 5)
    assert asked.read_text() == "xx"


def test_the_reference_must_work(course: SmallCourse) -> None:
    course.package("tiny_llm_ref", basics="def second(n): return 1 / 0")
    with pytest.raises(CourseError, match="the reference itself fails in Second: ZeroDivisionError"):
        compared(course, "def second(n): return n", task=2)


def test_what_is_printed_stays_away(course: SmallCourse, capsys: pytest.CaptureFixture[str]) -> None:
    only(course, "def second(n):\n    print('noise')\n    return n", "Second", task=2)
    assert capsys.readouterr().out == ""


@pytest.fixture
def command(course: SmallCourse, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`compare` on Task 2 of the small course."""
    registry = load(course.root / "curriculum")
    monkeypatch.setattr("course.curriculum.load", lambda: registry)
    course.package("tiny_llm", basics="def second(n): return n")
    return lambda *options: cli.main(["compare", "--week", "1", "--day", "1", "--task", "2", "--repeat", "1", *options])


def test_the_command_prints_one_json_object(command: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--json") == 0
    told = json.loads(capsys.readouterr().out)
    fields = ("task", "title", "learner", "reference", "state", "summary", "cases", "emulated", "machine")
    assert tuple(told) == fields
    assert told["cases"][0]["agreement"] == {"kind": "equal", "largest": 0.0, "where": "", "left_out": 0}


def test_the_command_prints_a_table(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command() == 0
    shown = capsys.readouterr().out
    assert "Second" in shown
    assert "- your values are right" in shown


LONG = "ANameThatIsLongerThanTheOthersAndHasNoRoomInEightyColumns"


def of(name: str, **fields: object) -> CaseComparison:
    side = Measured(Spread.of([0.02]), 2**20, 0)
    ratio = Spread(1.4, 1.3, 1.6)
    case = CaseComparison(name, "p", "passes", 2, 2, learner=side, reference=side, ratio=ratio, quickest=1.2)
    return msgspec.structs.replace(case, **fields)


def test_the_report_fits_and_does_not_contradict_itself(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    wrong = of("Wrong", state="fails", passed=1, problem="these values are wrong " * 8)
    cases = (of(LONG, agreement=Agreement("equal")), wrong)
    show(Comparison("1.1.1", "T", "tiny_llm", "tiny_llm_ref", "fails", summary(cases, False), cases, False, {}))
    text = capsys.readouterr().out
    assert all(len(line) <= 80 for line in text.splitlines())
    row = text.splitlines()[3]
    assert row.startswith(LONG[:20])
    assert "...  equal" in row
    assert "1.20x" in row
    assert "1.2 times slower than the reference" in " ".join(text.split())
    assert " ".join(text.split()).count("these values are wrong") == 8
    assert "- 1 of 2 cases does not pass\n" in text


def test_the_command_draws(command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--plot", str(tmp_path / "a plot.svg")) == 0
    assert "<svg" in (tmp_path / "a plot.svg").read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--case", "Nobody"], "Week 1 Day 1 Task 2 has no case Nobody: choose from Second"),
        (["--repeat", "0"], "argument --repeat: '0' is not a whole number from 1 to 1000: try 7"),
        (["--plot", "a.txt"], "a.txt does not end in .svg, .png, .pdf: try plot.svg"),
        (["--plot", "/no/where.svg"], "no folder /no: make it, or write to another place"),
        (["--task", "9"], "week 1 day 1 has no task 9: choose from 1, 2"),
    ],
)
def test_mistakes_are_one_line(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert command(*options) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: {said}")
    assert err.count("\n") == 1


def test_without_matplotlib(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert command("--plot", "a.svg") == 2
    assert "matplotlib is not installed" in capsys.readouterr().err


def test_without_a_reference(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("course.solutions.REFERENCE", Path("/nowhere"))
    assert command() == 2
    assert "this copy of the course has no reference solution" in capsys.readouterr().err
