"""Gates on the graded tests as a whole, for maintainers: the untouched starter must not earn anything."""

from pathlib import Path

from course.curriculum import Curriculum
from course.paths import REFERENCE
from course.scratch import grade
from course.starter import generate


def starter_problems(curriculum: Curriculum, folder: Path) -> list[str]:
    """Cases that are neither TODO nor blocked on a starter generated into `folder`, and days that did not run."""
    package = folder / "tiny_llm"
    generate(curriculum, REFERENCE, package)
    problems = []
    for week in curriculum.weeks:
        days = [day for day in week.days if day.tests.exists()]
        problems += [f"{day.tests} does not exist: {day.label} is not graded" for day in week.days if day not in days]
        if not days:
            continue
        report = grade(package, [day.tests for day in days], timeout=600.0)
        for result in report.results:
            if result.kind not in ("todo", "blocked"):
                label = f"Week {result.week} Day {result.day} Task {result.task}"
                problems.append(
                    f"{label}: {result.name} is {result.kind} on the untouched starter\n{result.text}".strip()
                )
        ran = {result.day for result in report.results}
        problems += [f"{day.label}: no case ran\n{report.output[-1500:]}" for day in days if day.day not in ran]
    return problems
