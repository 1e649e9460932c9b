"""The Gradescope autograder as files in memory: scripts, locked packages, the course without solutions, and secrets.

The two scripts are in the folder `gradescope` beside this file; `settings.sh` tells `run_autograder` what to grade.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from course.grading.course_file import NAME, Course
from course.grading.seeds import secret_text
from course.release.archive import zipped
from course.release.requirements import requirements
from course.release.selection import rules_for, select
from course.release.student import STARTER_ZIP
from course.work.place import HERE, Place
from course.work.pristine import pristine

KEPT = ("LICENSE", "curriculum", "models", "pyproject.toml", "src/course", "tests_refsol")
SCRIPTS = Path(__file__).with_name("gradescope")
SECRET = "secret/seeds"


@dataclass(frozen=True)
class Autograder:
    """The files of the zip; `private` ones are for root only."""

    files: dict[str, bytes]
    executable: frozenset[str]
    private: frozenset[str]
    left_out: dict[str, list[str]]

    def zipped(self) -> bytes:
        """What is uploaded: the same bytes for the same files."""
        return zipped(self.files, self.executable, self.private)


def autograder(
    course: Course, selected: Sequence[str], limit: int, seeds: Path | None = None, place: Place = HERE
) -> Autograder:
    """Build it. selected: options of `grade` that choose days. limit: seconds for a submission. Raises CourseError."""
    wanted = course.hidden is not None or seeds is not None
    secret = {SECRET: f"{secret_text(course, seeds)}\n".encode()} if wanted else {}
    chosen = select(place.root, KEPT, rules_for(course, place.root))
    files = chosen.files | secret
    files[STARTER_ZIP] = zipped(pristine(course.curriculum, place))
    files["requirements.txt"] = requirements()
    scripts = {path.name: path.read_bytes() for path in sorted(SCRIPTS.iterdir()) if path.is_file()}
    files |= scripts
    options = list(selected)
    if course.path is not None:
        files[NAME] = course.path.read_bytes()
        options += ["--course", NAME]
    files["settings.sh"] = f"limit={limit}\noptions=({shlex.join(options)})\n".encode()
    return Autograder(files, chosen.executable | scripts.keys(), frozenset(secret), chosen.left_out)
