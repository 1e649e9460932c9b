"""The files that a grade becomes, all with the same numbers, each replaced in one step."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from course.errors import CourseError
from course.grading.formats import csv_table, gradescope, junit, report
from course.grading.grade import RESULT, Grade, encode

FORMATS: dict[str, Callable[[Grade], bytes]] = {
    RESULT: encode,
    "results.json": gradescope.encode,
    "junit.xml": junit.encode,
    "result.csv": csv_table.encode,
    "report.md": report.encode,
}


def write(grade: Grade, folder: Path) -> None:
    """Write all of them into `folder`, which is made. Raises CourseError where that is not possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, encoded in FORMATS.items():
            replace(folder / name, encoded(grade))
    except OSError as error:
        raise CourseError(f"cannot write results to {folder} ({error.strerror}): choose another --output") from None


def replace(path: Path, content: bytes) -> None:
    """Put a whole file in place of an old one, or of none. Raises OSError."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file:
        try:
            file.write(content)
            file.close()
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
