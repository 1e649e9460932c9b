"""Errors of the solution package, told to the person who writes it: a task to do, or their own lines."""

from collections.abc import Iterator
from contextlib import contextmanager

from course.errors import CourseError
from course.failure import one_line, own_lines
from course.paths import REFERENCE, package_folder
from course.solutions import has_reference
from course.stub import stub_of


@contextmanager
def explained(solution: str) -> Iterator[None]:
    """Turn what the package `solution` raises into a CourseError. An error in which it has no part passes through."""
    try:
        yield
    except Exception as error:
        if stub := stub_of(error):
            other = f"; --solution {REFERENCE.name} runs the reference" if has_reference() else ""
            raise CourseError(
                f"{stub.text} is still to be written (`pdm run test --week {stub.week} --day {stub.day} --task "
                f"{stub.task}` checks it{other})"
            ) from error
        if isinstance(error, CourseError):
            raise
        lines = own_lines(error, package_folder(solution))
        if not lines:
            raise
        raise CourseError("\n  ".join([f"{solution} failed: {one_line(error)}", *lines])) from error
