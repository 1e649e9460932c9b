"""The spelling lint: codespell's list of common mistakes over all chapters and quizzes."""

import re
import subprocess
import sys
from collections.abc import Iterator

from course.book.build import INSTALL
from course.book.library import Library
from course.book.page import Finding
from course.errors import CourseError

_LINE = re.compile(r"^(.+?):(\d+): (.*)$")


def check(library: Library) -> Iterator[Finding]:
    """All findings of this module."""
    ignore = library.book / "spelling.txt"
    options = ["--ignore-words", str(ignore)] if ignore.exists() else []
    command = [sys.executable, "-m", "codespell_lib", *options, "--skip", "*.svg", str(library.src)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if "No module named" in done.stderr:
        raise CourseError(f"the package codespell is not installed: {INSTALL}")
    for line in done.stdout.splitlines():
        if match := _LINE.match(line):
            path = match[1].removeprefix(str(library.src)).lstrip("/")
            yield Finding(
                f"book/src/{path}", int(match[2]), f"spelling: {match[3]}", "correct it, or add it to book/spelling.txt"
            )
