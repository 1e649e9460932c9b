"""Alternatives: correct solutions in another style, which the tests must accept.

An alternative is a Python file in sections. Everything between the line `# file: model/basics.py` and the next such
line is appended to that file of a copy of the reference, so that its definitions replace the earlier ones."""

import re
from pathlib import Path

from course.curriculum import Day
from course.paths import REFERENCE
from course.scratch import Report, grade, scratch

_SECTION = re.compile(r"^# file: (\S+)[ \t]*$", re.MULTILINE)


def sections_of(text: str) -> dict[str, str]:
    """The text of each section, by the file it belongs to."""
    parts = _SECTION.split(text)
    sections: dict[str, str] = {}
    for file, body in zip(parts[1::2], parts[2::2], strict=True):
        sections[file] = sections.get(file, "") + body
    return sections


def run_alternative(day: Day, path: Path, *options: str, reference: Path = REFERENCE) -> Report:
    """Grade a copy of the reference in which the alternative's definitions come last."""
    with scratch(reference) as package:
        for file, body in sections_of(path.read_text()).items():
            target = package / file
            target.write_text(target.read_text() + "\n\n" + body)
        return grade(package, [day.tests], *options)


def problem_of(path: Path, reference: Path = REFERENCE) -> str | None:
    """What is wrong with the file itself."""
    if not path.exists():
        return "does not exist: every day needs two alternatives"
    sections = sections_of(path.read_text())
    if not sections:
        return "has no section: start one with a line `# file: model/basics.py`"
    missing = [file for file in sections if not (reference / file).is_file()]
    return f"the reference has no file {missing[0]}" if missing else None


def verdict(report: Report) -> str | None:
    """None if every case passed, else the first that did not."""
    if report.status == 0 and report.results:
        return None
    wrong = next((result.text for result in report.results if result.kind != "passed"), report.output.strip()[-1500:])
    return f"must pass, but:\n{wrong}"
