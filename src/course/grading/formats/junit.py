"""JUnit XML: a suite for each task, a test case for each case; points are properties of the suites."""

import xml.etree.ElementTree as ET

from course.grading.formats.gradescope import hidden_output
from course.grading.grade import CaseGrade, Grade, HiddenGrade, TaskGrade, told
from course.grading.text import one_line


def encode(grade: Grade) -> bytes:
    """The bytes of `junit.xml`."""
    root = ET.Element("testsuites", name=grade.title, time=f"{grade.seconds:.3f}")
    suites = [_suite(root, task) for task in grade.tasks]
    for key in ("tests", "failures", "errors", "skipped"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in suites)))
    if grade.problem or not grade.tasks:
        suite = ET.SubElement(root, "testsuite", name="grading", tests="0", failures="0", errors="0", skipped="0")
        ET.SubElement(suite, "system-err").text = grade.problem
    ET.indent(root, " ")
    return ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _suite(root: ET.Element, task: TaskGrade) -> ET.Element:
    suite = ET.SubElement(root, "testsuite", name=f"{task.label}: {task.title}")
    properties = ET.SubElement(suite, "properties")
    numbers = {"points": task.points, "max_points": task.max_points}
    if task.hidden:
        numbers |= {"hidden_points": task.hidden.points, "hidden_max_points": task.hidden.max_points}
    for name, value in numbers.items():
        ET.SubElement(properties, "property", name=name, value=told(value))
    for case in task.cases:
        _case(suite, task, case)
    if not task.cases:
        error = ET.SubElement(_element(suite, task, "all cases"), "error", message=task.state)
        error.text = task.state
    if task.hidden:
        _hidden(suite, task, task.hidden)
    kinds = {
        "tests": "testcase",
        "failures": "testcase/failure",
        "errors": "testcase/error",
        "skipped": "testcase/skipped",
    }
    for key, path in kinds.items():
        suite.set(key, str(len(suite.findall(path))))
    return suite


def _element(suite: ET.Element, task: TaskGrade, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=task.label, name=name)


def _case(suite: ET.Element, task: TaskGrade, case: CaseGrade) -> None:
    element = _element(suite, task, case.name)
    if case.state == "not run":
        ET.SubElement(element, "error", message="not run").text = case.text
    elif case.state != "passed":
        message = f"blocked by {case.by}" if case.by else case.state
        ET.SubElement(element, "failure", message=one_line(message), type=case.state).text = case.text


def _hidden(suite: ET.Element, task: TaskGrade, hidden: HiddenGrade) -> None:
    element = _element(suite, task, "hidden variants")
    if hidden.state == "not run":
        ET.SubElement(element, "skipped", message=hidden_output(hidden))
    elif hidden.state != "done":
        ET.SubElement(element, "failure", message="hidden variants", type="failed").text = hidden_output(hidden)
