"""Fixed workloads on which submissions compete: each has a gate for its output, and names the hardware of its number.

`names` is cheap. `measured` runs them, behind a boundary where there is one, and tells what has no entry and why.
"""

from typing import TYPE_CHECKING

from course.leaderboard.entry import Entry, Measured, Skipped

if TYPE_CHECKING:
    from course.boundary.settings import Boundary
    from course.curriculum import Curriculum
    from course.grading.course_file import Course

__all__ = ["NAMES", "Entry", "Measured", "Skipped", "measure", "measured"]

NAMES = {
    "decode": "tokens/s that follow a prompt, by the embedded model with the submission's best table; more is better",
    "prefill": "prompt tokens/s of the embedded model with the submission's best table; more is better",
    "kernels": "KiB that each Metal kernel moves in its graded cases, counted by the emulator; less is better",
}
"""The workloads, and what their numbers are."""


def measured(
    boundary: "Boundary | None", curriculum: "Curriculum", course: "Course | None" = None, package: str = "tiny_llm"
) -> Measured:
    """Run the workloads that the course file names (without one: all). Never raises for a submission's fault.

    boundary: where the package runs; None: in child processes that find it on the path.
    """
    from course.leaderboard.run import run

    wanted = course.leaderboard if course else tuple(NAMES)
    return run(boundary, curriculum, wanted, package)


def measure(
    boundary: "Boundary | None", curriculum: "Curriculum", course: "Course | None" = None, package: str = "tiny_llm"
) -> list[Entry]:
    """The entries of `measured`."""
    return list(measured(boundary, curriculum, course, package).entries)
