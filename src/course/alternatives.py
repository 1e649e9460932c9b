"""Alternatives: correct solutions in another style, which the tests must accept.

An alternative is a file in sections, or several of one name: `day_4_a.py`, `day_4_a.cpp`, `day_4_a.metal`. In Python
everything between the line `# file: model/basics.py` and the next such line is appended to that file of a copy of the
reference, so that its definitions replace the earlier ones. In C++ and Metal the line is
`// file: extensions/src/qmv.cpp`, and a section either holds task regions, which replace the file's regions of these
names, or no region at all: then it is the whole file."""

import re
from pathlib import Path

from course.curriculum import Day
from course.errors import CourseError
from course.paths import REFERENCE, is_extension, source_file
from course.scratch import Report, grade, scratch
from course.starter.regions import bodies_of, regions, replaced

_SECTION = re.compile(r"^(?:#|//) file: (\S+)[ \t]*$", re.MULTILINE)
_SUFFIXES = (".py", ".cpp", ".metal")


def sections_of(text: str) -> dict[str, str]:
    """The text of each section, by the file it belongs to."""
    parts = _SECTION.split(text)
    sections: dict[str, str] = {}
    for file, body in zip(parts[1::2], parts[2::2], strict=True):
        sections[file] = sections.get(file, "") + body
    return sections


def changed(file: str, text: str, section: str) -> str:
    """The reference's `text` of `file` with the alternative in it. Raises CourseError for regions that do not fit."""
    if not is_extension(file):
        return text + "\n\n" + section
    bodies = bodies_of(file, section)
    if not bodies:
        return section
    if outside := _outside_of_regions(file, section):
        raise CourseError(f"{file}: {outside!r} is outside of the section's regions: give regions or the whole file")
    return replaced(file, text, bodies)


def run_alternative(day: Day, path: Path, *options: str, reference: Path = REFERENCE) -> Report:
    """Grade a copy of the reference with the alternative's code in it."""
    with scratch(reference) as package:
        for file, section in _sections(path).items():
            target = source_file(package, file)
            target.write_text(changed(file, target.read_text(), section))
        return grade(package, [day.tests], *options)


def problem_of(path: Path, reference: Path = REFERENCE) -> str | None:
    """What is wrong with the file itself."""
    if not _files(path):
        return "does not exist: every day needs two alternatives"
    sections = _sections(path)
    if not sections:
        return "has no section: start one with a line `# file: model/basics.py` or `// file: extensions/src/qmv.cpp`"
    for file, section in sections.items():
        target = source_file(reference, file)
        if not target.is_file():
            return f"the reference has no file {file}"
        try:
            changed(file, target.read_text(), section)
        except CourseError as error:
            return str(error)
    return None


def verdict(report: Report) -> str | None:
    """None if every case passed, else the first that did not."""
    if report.status == 0 and report.results:
        return None
    wrong = next((result.text for result in report.results if result.kind != "passed"), report.output.strip()[-1500:])
    return f"must pass, but:\n{wrong}"


def _files(path: Path) -> list[Path]:
    """The files of one alternative; `path` is its Python file, which need not exist."""
    return [file for suffix in _SUFFIXES if (file := path.with_suffix(suffix)).is_file()]


def _sections(path: Path) -> dict[str, str]:
    sections: dict[str, str] = {}
    for file in _files(path):
        for name, section in sections_of(file.read_text()).items():
            sections[name] = sections.get(name, "") + section
    return sections


def _outside_of_regions(file: str, section: str) -> str:
    """The first line of code that belongs to no region."""
    inside = {n for region in regions(file, section).values() for n in range(region.first, region.last + 1)}
    outside = (line.strip() for n, line in enumerate(section.splitlines(), 1) if n not in inside)
    return next((line for line in outside if line and not line.startswith("//")), "")
