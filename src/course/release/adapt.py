"""House files as a class needs them: the same text without commands, folders and people that are not there.

Each change is checked on what it makes, so that a house file of another shape is an error and not a wrong copy.
"""

import json
import re
import tomllib

from course.errors import CourseError
from course.paths import REFERENCE


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
    """For a learner's assistant only."""
    parts = text.split("\n\n")
    kept = [part for part in parts if not part.startswith(("**A maintainer**", "Find out first"))]
    if len(parts) - len(kept) != 2:
        raise CourseError(
            "AGENTS.md: cannot leave out the maintainer's part: begin its paragraph with **A maintainer**"
        )
    return "\n\n".join(kept).rstrip("\n") + "\n"


def devcontainer(text: str) -> str:
    """Prepared by a command that works without the reference."""
    settings = json.loads(text)
    settings["postCreateCommand"] = "./run status"
    return json.dumps(settings, indent=2) + "\n"


def _command(line: str) -> str:
    words = line.split()
    return words[3] if words[:3] == ["python", "-m", "course"] else ""
