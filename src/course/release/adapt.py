"""House files as a class needs them: the same text without commands, folders and people that are not there.

Each change is checked on what it makes, so that a house file of another shape is an error and not a wrong copy.
"""

import json
import re
import tomllib
from collections.abc import Mapping

from course.book.without_reference import in_other_words, with_note
from course.errors import CourseError
from course.paths import REFERENCE

_SPOILERS = re.compile(r"^- Do not read, quote or paraphrase .*?(?=^- )", re.MULTILINE | re.DOTALL)
_NO_SPOILERS = "- Do not look for a solution elsewhere, and do not write the body of a task for them.\n"
_SOLUTION = re.compile(r" `\./run solution` and `\./run compare` come\s+after a task has passed; [^.]*\.")


def pyproject(text: str, commands: frozenset[str]) -> str:
    """Without scripts whose command is not among `commands`, or that name the reference, and without its folder."""
    scripts = {name: str(line) for name, line in tomllib.loads(text)["tool"]["pdm"]["scripts"].items()}
    gone = [name for name, line in scripts.items() if REFERENCE.name in line or _command(line) not in commands]
    pattern = "|".join(map(re.escape, gone)) or r"(?!)"
    changed = re.sub(rf'^(?:{pattern}) = ".*"\n', "", text, flags=re.MULTILINE)
    changed = changed.replace(f', "src/{REFERENCE.name}"', "")
    kept = set(tomllib.loads(changed)["tool"]["pdm"]["scripts"])
    if kept != scripts.keys() - set(gone) or REFERENCE.name in changed:
        raise CourseError("pyproject.toml: cannot leave out scripts: write each on a line of its own, as it was")
    return changed


def agents(text: str) -> str:
    """For a learner's assistant only, in a copy without reference."""
    parts = text.split("\n\n")
    kept = [part for part in parts if not part.startswith(("**A maintainer**", "**An instructor**", "Find out first"))]
    if len(parts) - len(kept) != 3:
        raise CourseError(
            "AGENTS.md: cannot leave out the parts of others: begin their paragraphs with **A maintainer** and "
            "**An instructor**"
        )
    changed = _SOLUTION.sub("", _SPOILERS.sub(_NO_SPOILERS, "\n\n".join(kept).rstrip("\n") + "\n"))
    if REFERENCE.name in changed or "./run solution" in changed:
        raise CourseError("AGENTS.md: cannot leave out the reference: begin its line with '- Do not read', as it was")
    return changed


def chapters(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Those of the book's pages that say something else, or get a note, where there is no reference."""
    pages = {name: text.decode() for name, text in files.items() if name.startswith("book/src/") and name[-3:] == ".md"}
    changed = {name: with_note(in_other_words(text)) for name, text in pages.items()}
    return {name: text.encode() for name, text in changed.items() if text != pages[name]}


def devcontainer(text: str) -> str:
    """Prepared by a command that works without the reference."""
    settings = json.loads(text)
    settings["postCreateCommand"] = "./run status"
    return json.dumps(settings, indent=2) + "\n"


def _command(line: str) -> str:
    words = line.split()
    return words[3] if words[:3] == ["python", "-m", "course"] else ""
