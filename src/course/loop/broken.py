"""Saved Python files that do not parse, whichever task they belong to."""

import ast
import warnings
from collections.abc import Iterable
from pathlib import Path

from course.paths import ROOT


class Broken:
    """Remembers of each file that was looked at what is wrong with it."""

    def __init__(self) -> None:
        self._found: dict[Path, str] = {}

    def look(self, paths: Iterable[Path]) -> None:
        """Look at files again; one that is gone is not broken."""
        for path in paths:
            self._found.pop(path, None)
            if path.suffix == ".py" and (problem := _problem(path)):
                self._found[path] = problem

    def others(self, told: str) -> list[str]:
        """A line for each broken file that `told` does not name."""
        return [line for _, line in sorted(self._found.items()) if line.partition(": ")[0] not in told]


def _problem(path: Path) -> str:
    """`file:line: SyntaxError: why`; "" for a file that parses, or that cannot be read."""
    try:
        with warnings.catch_warnings(action="ignore"):
            ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        line = f":{error.lineno}" if getattr(error, "lineno", None) else ""
        return f"{name}{line}: {type(error).__name__}: {getattr(error, 'msg', error)}"
    except OSError:
        pass
    return ""
