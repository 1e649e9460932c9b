"""Which files of a repository a release takes, and which it leaves out and why. Reads, and writes nothing."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from glob import escape
from pathlib import Path
from typing import NamedTuple

from course.grading.course_file import Course
from course.starter.generate import BUILT, LEFT


class Rule(NamedTuple):
    """Files that are left out, by patterns that match a file or a folder's beginning, and the reason."""

    why: str
    patterns: tuple[str, ...]

    def pattern(self, name: str) -> str | None:
        """The pattern that leaves out the file `name`; None: this rule does not."""
        return next((one for one in self.patterns if fnmatch(name, one) or fnmatch(name, f"{one}/*")), None)


SOLUTIONS = Rule("the reference solution", ("src/tiny_llm_ref", "src/extensions_ref"))
MUTANTS = Rule(
    "mutants and alternatives, which hold solutions", ("tests_refsol/*/mutants", "tests_refsol/*/alternatives")
)
OWN_WORK = Rule("your own work: the untouched starter is there instead", ("src/tiny_llm", "src/extensions"))
TOOLS = Rule(
    "commands that need what is left out",
    (
        "src/course/release",
        "src/course/classroom",
        "src/course/commands/class.py",
        "src/course/commands/gates.py",
        "src/course/commands/lint.py",
        "src/course/commands/mutants.py",
        "src/course/commands/release.py",
    ),
)
UPKEEP = Rule(
    "for maintainers of the course",
    ("tests", ".ci", ".github", "CONTRIBUTING.md", "book/README.md", "book/spelling.txt", "book/ruff.toml"),
)
DESK = Rule(
    "the instructor's", ("course.toml", "course.example.toml", "book/src/teaching.md", "secret", "*.seeds", "seeds*")
)
BUILDS = Rule("built, and built again there", ("book/build",))
FACE = Rule("written anew for a class", ("README.md",))
RULES = (SOLUTIONS, MUTANTS, OWN_WORK, TOOLS, UPKEEP, DESK, BUILDS, FACE)
OTHER = "no part of the course"


def rules_for(course: Course, root: Path) -> tuple[Rule, ...]:
    """The rules, with the course file and the secret that it names, wherever in the repository they are."""
    named = [course.path] if course.path else []
    if course.path and course.hidden and course.hidden.file:
        named.append(course.path.parent / course.hidden.file)
    inside = [path.resolve().relative_to(root) for path in named if path.resolve().is_relative_to(root)]
    return (Rule(DESK.why, tuple(escape(path.as_posix()) for path in inside)), *RULES)


@dataclass(frozen=True)
class Selection:
    """The files that a release takes, by name, and the names of those left out, by reason."""

    files: dict[str, bytes]
    executable: frozenset[str]
    left_out: dict[str, list[str]] = field(default_factory=dict)


def select(root: Path, kept: tuple[str, ...], rules: tuple[Rule, ...]) -> Selection:
    """The files of `root` below the names `kept`, without those that a rule names. What tools leave does not count."""
    files: dict[str, bytes] = {}
    left_out: dict[str, list[str]] = {}
    executable = set()
    for name in _files(root):
        why = next((rule.why for rule in rules if rule.pattern(name)), None)
        if why is None and not any(name == top or name.startswith(f"{top}/") for top in kept):
            why = OTHER
        if why is not None:
            left_out.setdefault(why, []).append(name)
            continue
        path = root / name
        files[name] = path.read_bytes()
        if path.stat().st_mode & 0o100:
            executable.add(name)
    return Selection(files, frozenset(executable), left_out)


def summary(names: list[str]) -> list[str]:
    """Names for a reader: what one pattern of a rule leaves out is one entry, as is a folder that no rule names."""
    counts: Counter[str] = Counter()
    for name in names:
        found = next((pattern for rule in RULES if (pattern := rule.pattern(name))), None)
        counts[found or name.partition("/")[0]] += 1
    return [name if count == 1 else f"{name} ({count} files)" for name, count in counts.items()]


def _files(root: Path) -> Iterator[str]:
    """Every file that is not a tool's, in order. Hidden folders count at the top only, and there only the course's."""
    hidden = {".ci", ".github", ".devcontainer", ".gitignore"}
    for top in sorted(root.iterdir()):
        if top.name.startswith(".") and top.name not in hidden:
            continue
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            parts = path.relative_to(root).parts
            tool = any(part.startswith(".") or part in LEFT for part in parts[1:]) or path.suffix in BUILT
            if path.is_file() and not path.is_symlink() and (not tool or parts[0] in hidden):
                yield "/".join(parts)
