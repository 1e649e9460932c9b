"""What each day needs of a machine, from the registry and from what its tests and files import.

Runs in a process of its own: it reads the registry, which needs a package.
"""

import ast
import sys
from functools import cache
from pathlib import Path

from course.curriculum import Curriculum, Day, load
from course.doctor.finding import EVERYTHING
from course.paths import ROOT, SRC, is_extension

_OURS = ("course", "tests_refsol", "tiny_llm", "tiny_llm_ref", "models", "benches")
_GRADING = ("course.plugin", "course.child")  # imported whatever the day
_ALWAYS = ("pytest_timeout", "rich")  # a plugin by name, and the table that ends a run


def weeks() -> list[dict[str, object]]:
    """Weeks with their days, and for each day the sorted words that a finding may stop. Plain values."""
    curriculum = load()
    return [
        {
            "week": week.week,
            "title": week.title,
            "days": [
                {"day": day.day, "title": day.title, "needs": sorted(_needs(curriculum, day))} for day in week.days
            ],
        }
        for week in curriculum.weeks
    ]


def _needs(curriculum: Curriculum, day: Day) -> set[str]:
    before = _with_earlier(curriculum, day)
    files = {file for one in before for file in [*one.given, *(f for task in one.tasks for f in task.symbols)]}
    own = SRC / "tiny_llm"
    modules = {*_ALWAYS, *_modules(day.tests)}
    modules = modules.union(*(_modules(SRC / f"{name.replace('.', '/')}.py") for name in _GRADING))
    modules = modules.union(*(_modules(own / file) for file in files if not is_extension(file)))
    return {
        EVERYTHING,
        f"day:{day.week}.{day.day}",
        *curriculum.built_for(day),
        *(f"file:{file}" for file in files),
        *(f"module:{name}" for name in modules),
    }


def _with_earlier(curriculum: Curriculum, day: Day) -> list[Day]:
    """A day and all that it needs, in any order."""
    found = [day]
    for need in day.needs:
        found += _with_earlier(curriculum, curriculum.day(*map(int, need.split("."))))
    return found


@cache
def _modules(file: Path) -> frozenset[str]:
    """Other people's modules that a file imports, itself or by modules of the course."""
    found: set[str] = set()
    seen: set[Path] = set()
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        for name in _imports(path):
            top = name.partition(".")[0]
            if top in _OURS:
                waiting += _files(name)
            elif top not in sys.stdlib_module_names:
                found.add(top)
    return frozenset(found)


@cache
def _imports(path: Path) -> tuple[str, ...]:
    """Names that a file imports when it is itself imported: not those inside functions, which only some need."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ()
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(names)


def _files(name: str) -> list[Path]:
    base = (ROOT if name.startswith(("models", "benches", "tests_refsol")) else SRC) / name.replace(".", "/")
    return [base.with_suffix(".py"), base / "__init__.py"]
