"""The plugin's verdicts, messages and exit statuses, on a small course of its own."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from course.scratch import Report, grade
from course.summary import Result

if TYPE_CHECKING:
    from conftest import SmallCourse

_PACKAGE = """
import mlx.core as mx

def stub():
    raise NotImplementedError("Week 1 Day 1 Task 1: first - see book/src/week1-01-one.md#task-1")

def later_stub():
    raise NotImplementedError("Week 1 Day 2 Task 1: third - see book/src/week1-02-two.md#task-1")

def fine():
    return 1

def wrong():
    return 2

def wrapped():
    try:
        stub()
    except NotImplementedError as error:
        raise ValueError("sorry") from error

def hidden():
    try:
        stub()
    except NotImplementedError:
        raise ValueError("sorry") from None

def grouped():
    try:
        stub()
    except NotImplementedError as error:
        raise ExceptionGroup("several", [KeyError("x"), error]) from None

def blocked():
    return later_stub()

def own_not_implemented():
    raise NotImplementedError("not my task")

def raises():
    return {}["missing"]

def prints():
    print("a line from the learner")
    return 2

def leaves():
    import sys
    sys.exit(0)

def recurses():
    return recurses()

def strange():
    return object()

def base():
    raise BaseException("not an Exception")

def skips():
    import unittest
    raise unittest.SkipTest("please")

def cheats():
    import tiny_llm_ref

def forbidden():
    return mx.softmax(mx.ones(2))

def nans():
    return mx.array([1.0, float("nan")])

def loops():
    while True:
        pass

def loops_and_swallows():
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass

def after_two_loops():
    return 1
"""

_TESTS = '''
import mlx.core as mx
import numpy as np
from course.case import case, error_of
from course.compare import close, same

NAMES = {names}

@case(task=1, params=[dict(name=name) for name in NAMES], timeout=1.0)
class Returns:
    """It returns one."""
    def inputs(rng, name): return name
    def observe(solution, name): return getattr(solution.module("model.basics"), name)()
    def verify(name, value): same(value, 1)
'''

_REST = '''
@case(task=2)
class HasNoNan:
    """It returns ones."""
    def inputs(rng): return None
    def observe(solution, _): return solution.module("model.basics").nans()
    def verify(_, value): close(value, np.ones(2), suspects={"divided by zero": np.array([1.0, np.nan])})

@case(task=2)
class Refuses:
    """It refuses."""
    def inputs(rng): return None
    def observe(solution, _): return error_of(solution.module("model.basics").raises)
    def verify(_, value): same(value, {"type": "KeyError", "message": "'missing'"})

@case(task=2)
class LetsStubsThrough:
    """It refuses."""
    def inputs(rng): return None
    def observe(solution, _): return error_of(solution.module("model.basics").wrapped)
    def verify(_, value): same(value, {"type": "ValueError", "message": "sorry"})

@case(task=2)
class BrokenVerify:
    """The test itself looks into what is not there."""
    def inputs(rng): return None
    def observe(solution, _): return solution.module("model.basics").fine()
    def verify(_, value): return value["key"]

@case(task=2)
class Property:
    """The result is below ten."""
    def observe(solution, x): return x
    def check(observe):
        from hypothesis import given, settings, strategies as st
        @settings(max_examples=50, deadline=None, derandomize=True, database=None)
        @given(st.integers(0, 1000))
        def prop(x): assert observe(x) < 10, "too large"
        prop()

@case(task=2, params=[dict(name=n) for n in ("stub", "raises", "loops", "fine")], timeout=1.0)
class PropertyOfCode:
    """It returns one for every number."""
    def inputs(rng, name): return name
    def observe(solution, name): return getattr(solution.module("model.basics"), name)()
    def check(observe, name):
        from hypothesis import given, settings, strategies as st
        calls = []
        @settings(max_examples=20, deadline=None, derandomize=True, database=None)
        @given(st.integers(0, 1000))
        def prop(x):
            calls.append(x)
            assert len(calls) == 1 or name not in ("stub", "loops"), "tried again after a stop"
            assert observe(name) == 1
        prop()
'''

_NAMES = re.findall(r"^def (\w+)\(\)", _PACKAGE, re.MULTILINE)


class Graded:
    """The results of the whole small course."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.results = {result.name: result for result in report.results}

    def of(self, function: str) -> Result:
        """The result of the case that calls `function` of the package."""
        return self.results[f"Returns[{_NAMES.index(function)}]"]


@pytest.fixture(scope="module", params=["local", "isolated"])
def graded(request: pytest.FixtureRequest, make_course: Callable[[], "SmallCourse"]) -> Graded:
    course = make_course()
    package = course.package(basics=_PACKAGE)
    course.write("tiny_llm_ref/__init__.py", "")
    tests = course.tests(_TESTS.format(names=_NAMES) + _REST)
    isolate = ["--isolate"] if request.param == "isolated" else []
    return Graded(grade(package, [tests], *course.options, *isolate))


def test_run_fails_and_every_case_has_a_result(graded: Graded):
    assert graded.report.status == 1
    assert len(graded.results) == len(_NAMES) + 9


def test_right_and_wrong(graded: Graded):
    assert graded.of("fine").kind == "passed"
    wrong = graded.of("wrong")
    assert wrong.kind == "failed"
    assert wrong.text == (
        "Week 1 Day 1 Task 1: First\nIt returns one.\n"
        f"  in Returns[{_NAMES.index('wrong')}] with name='wrong'\nresult: expected 1, got 2"
    )


@pytest.mark.parametrize("name", ["stub", "wrapped", "hidden", "grouped"])
def test_stub_anywhere_in_the_chain_is_todo(graded: Graded, name: str):
    assert graded.of(name).kind == "todo"


@pytest.mark.parametrize("name", ["later_stub", "blocked"])
def test_stub_of_another_task_blocks(graded: Graded, name: str):
    result = graded.of(name)
    assert (result.kind, result.by) == ("blocked", "Week 1 Day 2 Task 1")


def test_stubs_of_the_own_day_block_other_tasks(graded: Graded):
    result = graded.results["LetsStubsThrough[0]"]
    assert (result.kind, result.by) == ("blocked", "Week 1 Day 1 Task 1")


@pytest.mark.parametrize(
    ("name", "text", "source"),
    [
        ("own_not_implemented", "NotImplementedError: not my task", 'raise NotImplementedError("not my task")'),
        ("raises", "KeyError: 'missing'", 'return {}["missing"]'),
        ("prints", "result: expected 1, got 2", ""),
        ("leaves", "your code ended the program: sys.exit(0)", "sys.exit(0)"),
        ("loops", "no result within 1 s", ""),
        ("loops_and_swallows", "no result within 1 s", ""),
        ("recurses", "RecursionError: maximum recursion depth exceeded", "return recurses()"),
        ("strange", "the test cannot copy what your code returned: value is a object", ""),
        ("base", "BaseException: not an Exception", 'raise BaseException("not an Exception")'),
        ("skips", "SkipTest: please", 'raise unittest.SkipTest("please")'),
        ("cheats", "tiny_llm cannot import tiny_llm_ref: write it yourself", "import tiny_llm_ref"),
        ("forbidden", "mx.softmax is what this day teaches: build it from", "return mx.softmax(mx.ones(2))"),
        ("nans", "result: expected 1, got float32 (2,)", ""),
    ],
)
def test_other_ends_are_failures_told_by_the_learners_own_lines(graded: Graded, name: str, text: str, source: str):
    result = graded.of(name)
    assert result.kind == "failed"
    assert text in result.text
    if source:
        line = _PACKAGE.splitlines().index(f"    {source}") + 1
        assert f"/tiny_llm/model/basics.py:{line} in {name}: {source}" in result.text
    assert "src/course" not in result.text
    assert "Traceback" not in result.text
    assert len(result.text.splitlines()) < 12


def test_after_two_timeouts_the_rest_of_the_task_is_not_run(graded: Graded):
    result = graded.of("after_two_loops")
    assert result.kind == "not run"
    assert "not run, because 2 cases of this task have exceeded their time limit already" in result.text
    assert "1 more were not run, because of the time limit" in graded.report.output
    assert graded.results["PropertyOfCode[3]"].kind == "passed"  # of another task, with one timeout


def test_what_the_code_printed_is_kept(graded: Graded):
    assert "a line from the learner" in graded.of("prints").output
    assert "a line from the learner" not in graded.of("leaves").output


def test_nan_is_told_with_the_likely_mistake(graded: Graded):
    text = graded.results["HasNoNan[0]"].text
    assert "first wrong at [1]: expected 1, got nan" in text
    assert "likely mistake: divided by zero" in text


def test_error_of_gives_type_and_message(graded: Graded):
    assert graded.results["Refuses[0]"].kind == "passed"


def test_mistake_in_verify_names_the_line_of_the_test(graded: Graded):
    result = graded.results["BrokenVerify[0]"]
    assert result.kind == "failed"
    assert re.search(r"TypeError: .*\n  test_day_1.py:\d+: .*value\[.key.\]", result.text)


def test_property_shows_the_smallest_example(graded: Graded):
    text = graded.results["Property[0]"].text
    assert "too large" in text
    assert re.search(r"x=10,", text)


def test_property_stops_at_a_stub_or_a_hang_and_shrinks_an_error(graded: Graded):
    kinds = [graded.results[f"PropertyOfCode[{i}]"].kind for i in range(4)]
    assert kinds == ["blocked", "failed", "failed", "passed"]
    assert "KeyError: 'missing'" in graded.results["PropertyOfCode[1]"].text
    assert "no result within 1 s" in graded.results["PropertyOfCode[2]"].text


def test_summary_has_a_line_for_each_task_and_the_next_thing_to_open(graded: Graded):
    output = graded.report.output
    assert re.search(r"Week 1 Day 1 Task 1 +First +failing +1/\d+ +0/10", output)
    assert re.search(r"Week 1 Day 1 Task 2 +Second +failing +2/9 +0/5", output)
    assert re.search(r"total +0/15", output)
    assert "next: Week 1 Day 1 Task 1: First" in output
    assert "pdm run hint --week 1 --day 1 --task 1" in output
    assert "more of this task fail" in output


_GOOD = '''
from course.case import case
from course.compare import same

@case(task={task})
class Works{task}:
    """It works."""
    def inputs(rng): return {inputs}
    def observe(solution, x): return x
    def verify(x, value): same(value, x)
'''


def run(course: "SmallCourse", *options: str, **texts: str) -> Report:
    package = course.package()
    tests = [course.tests(text, int(name[-1])) for name, text in texts.items()]
    return grade(package, tests, *course.options, *options)


def good(*tasks: int) -> str:
    return "".join(_GOOD.format(task=task, inputs="1") for task in tasks)


def test_all_passed_is_status_0(small_course: "SmallCourse"):
    report = run(small_course, day1=good(1, 2), day2=good(1))
    assert report.status == 0
    assert re.search(r"total +35/35", report.output)
    assert "all done: nothing is left to do in the course so far" in report.output


def test_blocked_task_leads_to_the_one_that_blocks(small_course: "SmallCourse"):
    stub = 'raise NotImplementedError("Week 1 Day 2 Task 1: third - see book/src/week1-02-two.md#task-1")'
    report = run(small_course, day1=good(1, 2).replace("return x", f"print(x); {stub}", 1))
    assert report.status == 1
    assert re.search(r"Week 1 Day 1 Task 1 +First +blocked by Week 1 Day 2 Task 1 +0/1 +0/10", report.output)
    assert "next: Week 1 Day 2 Task 1: Third\n  write  src/tiny_llm/model/more.py" in report.output


def test_what_follows_is_named(small_course: "SmallCourse"):
    report = run(small_course, day1=good(1, 2))
    assert report.status == 0
    assert "all done; next: Week 1 Day 2 Task 1: Third" in report.output
    assert "book/src/week1-02-two.md#task-1" in report.output


def test_task_without_a_case_fails_the_run(small_course: "SmallCourse"):
    report = run(small_course, day1=good(1))
    assert report.status == 1
    assert re.search(r"Week 1 Day 1 Task 2 +Second +no graded checks", report.output)


def test_one_task_can_be_asked_for(small_course: "SmallCourse"):
    report = run(small_course, "--task", "1", day1=good(1, 2))
    assert report.status == 0
    assert [result.task for result in report.results] == [1]


def test_asked_task_without_a_case_is_no_success(small_course: "SmallCourse"):
    assert run(small_course, "--task", "2", day1=good(1)).status != 0


def test_one_case_can_be_asked_for_by_its_exact_name(small_course: "SmallCourse"):
    assert [r.name for r in run(small_course, "--case", "Works1", day1=good(1, 2)).results] == ["Works1[0]"]
    assert run(small_course, "--case", "Works", day1=good(1, 2)).status == 5


def test_skipped_is_not_passed(small_course: "SmallCourse"):
    skipped = _GOOD.format(task=2, inputs="__import__('pytest').skip('not today')")
    report = run(small_course, day1=good(1) + skipped)
    assert report.status == 1
    assert re.search(r"Week 1 Day 1 Task 2 +Second +skipped", report.output)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nonsense", "nonsense"),
        ("def broken(:", "SyntaxError"),
        (good(3), "Week 1 Day 1 has 2 tasks, not 3"),
        (good(1).replace('    """It works."""\n', ""), "needs a docstring that states the property"),
        (good(1).replace("task=1", "task=1, params=[]"), "needs at least one set of parameters"),
        (good(1).replace("def verify", "def check"), "needs inputs|check"),
        (good(1).replace("def observe", "def watch"), r"needs observe\(solution, inputs\)"),
        (good(1) + "\nOther = Works1\n", "a case has one name"),
        ("", ""),
    ],
)
def test_mistakes_in_a_test_file_fail_the_run(small_course: "SmallCourse", text: str, message: str):
    if "check" in message:
        text = text.replace("def inputs", "def inputs_").replace("def check", "def verify")
    report = run(small_course, day1=text)
    assert report.status != 0
    assert re.search(message, report.output)


def test_inputs_follow_the_seed_and_the_case(small_course: "SmallCourse"):
    text = _GOOD.format(task=1, inputs="float(rng.normal())").replace("same(value, x)", "print(value)")
    text = text.replace("task=1", "task=1, params=[{}, {}]") + good(2)

    def printed(*options: str) -> str:
        report = run(small_course, *options, "--tb=short", "-rP", day1=text)
        return "".join(result.output for result in report.results)

    first = printed()
    assert first == printed()
    assert first != printed("--seed-base", "7")
    assert len(set(first.split())) == 2


def test_syntax_error_of_the_learner_is_shown_with_its_line(small_course: "SmallCourse"):
    package = small_course.package(basics="x = 1\ndef f(:\n", more="from . import basics\n")
    text = good(1).replace("return x", "return solution.module('model.more')")
    report = grade(package, [small_course.tests(text)], *small_course.options)
    assert re.search(r"SyntaxError: invalid syntax\n(.*\n)?.*basics\.py:2: def f\(:", report.results[0].text)


def test_failed_assertion_shows_its_own_words_alone(small_course: "SmallCourse"):
    lines = ("assert value == [2], 'one is wrong'", "assert not isinstance(value, list), 'no list'", "assert not value")
    cases = [good(1).replace("Works1", f"Works{i}").replace("same(value, x)", line) for i, line in enumerate(lines)]
    report = run(small_course, day1="".join(cases).replace("return 1", "return [1]"))
    texts = [result.text.splitlines()[3:] for result in report.results]
    assert texts == [["one is wrong"], ["no list"], ["assert not [1]"]]


def test_only_the_end_of_a_long_output_is_shown(small_course: "SmallCourse"):
    wrong = good(1, 2).replace("return x", "print('first'); print('x' * 10**6); print('y\\n' * 500 + 'last'); return 2")
    report = run(small_course, day1=wrong)
    assert len(report.output) < 4000
    assert "last" in report.output
    assert "first\n" not in report.output
    assert max(len(result.output) for result in report.results) <= 10_000
    long = good(1, 2).replace("return x", "print('z' * 5000); return 2")
    assert max(map(len, run(small_course, day1=long).output.splitlines())) < 300


def test_colons_in_a_message_are_no_emoji(small_course: "SmallCourse"):
    report = run(small_course, day1=good(1).replace("same(value, x)", "raise AssertionError('basics.py:100: x')"))
    assert "basics.py:100: x" in report.output


def test_failing_task_names_an_earlier_one_that_is_not_done(small_course: "SmallCourse"):
    line = "Week 1 Day 1 Task 1 is not done either: mend it first if you use it here"
    wrong = good(1, 2).replace("same(value, x)", "same(value, 2)")
    assert run(small_course, day1=wrong).output.count(line) == 1
    assert line not in run(small_course, "--task", "2", day1=wrong).output
    alone = good(1) + good(2).replace("same(value, x)", "same(value, 2)")
    assert line not in run(small_course, day1=alone).output
