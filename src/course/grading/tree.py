"""The fresh tree that is graded: the untouched starter, with a submission's files in it.

It holds plain files only, readable by every user: the code under test may run as another one."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from course.curriculum import Curriculum, Day
from course.grading.intake import Intake
from course.grading.text import code, few
from course.paths import source_file

PACKAGE = "tiny_llm"


def plant(tree: Path, starter: Mapping[str, bytes], files: Mapping[str, bytes]) -> None:
    """Write the starter with `files` in the place of its own; `tree` is made."""
    tree.mkdir(mode=0o755)
    for name, content in {**starter, **files}.items():
        path = source_file(tree / PACKAGE, name)
        for folder in reversed(path.relative_to(tree).parents):
            (tree / folder).mkdir(mode=0o755, exist_ok=True)
            (tree / folder).chmod(0o755)
        path.write_bytes(content)
        path.chmod(0o644)


def about(intake: Intake, starter: Mapping[str, bytes], curriculum: Curriculum, days: Sequence[Day]) -> list[str]:
    """What to say of files that are missing on these days, of changed given code, and of the learner's own files."""
    needed = {name for day in days for task in day.tasks for name in task.symbols}
    missing = [name for name in intake.missing if name in needed]
    changed = sorted(name for name, content in intake.others.items() if name in starter and starter[name] != content)
    given = [name for name in changed if name not in curriculum.files or not curriculum.files[name].tasks]
    own = unknown(intake, starter)
    notes = {
        "not in the submission, so the starter's: {}": missing,
        "given code is graded as the course gives it, not as changed here: {}": given,
        "not graded, as the course knows no such files: {}: "
        "put the code into the course's own files, or ask your instructor": own,
    }
    return [text.format(few(list(map(code, names)))) for text, names in notes.items() if names]


def unknown(intake: Intake, starter: Mapping[str, bytes]) -> list[str]:
    """The learner's own files: the course has none of these names, and does not grade them."""
    return sorted(name for name in intake.others if name not in starter)
