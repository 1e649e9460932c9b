"""The fresh tree that is graded: the untouched starter, with a submission's files in it.

It holds plain files only, readable by every user: the code under test may run as another one."""

from collections.abc import Mapping
from pathlib import Path

from course.curriculum import Curriculum
from course.grading.intake import Intake
from course.grading.text import one_line
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


def about_others(intake: Intake, starter: Mapping[str, bytes], curriculum: Curriculum) -> list[str]:
    """What to say of code beside the graded files: given code that was changed, files of the learner's own."""
    changed = sorted(name for name, content in intake.others.items() if name in starter and starter[name] != content)
    own = sorted(name for name in intake.others if name not in starter)
    notes = []
    if changed := [name for name in changed if name not in curriculum.files or not curriculum.files[name].tasks]:
        notes.append(f"given code is graded as the course gives it, not as changed here: {_few(changed)}")
    if own:
        notes.append(
            f"not graded, as the course knows no such files: {_few(own)} (extra_files in course.toml allows them)"
        )
    return notes


def _few(names: list[str], most: int = 5) -> str:
    shown = ", ".join(one_line(name, 80) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
