"""A checkout of the course in a folder of its own, in which a test plays the learner."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from course.paths import ROOT

_PARTS = ("curriculum", "src/course", "src/tiny_llm", "src/tiny_llm_ref", "src/extensions", "tests_refsol/week_1")
_OTHERS = ("PYTEST", "COLUMNS", "COV", "PYTHONDONTWRITEBYTECODE")


class Checkout:
    """The course under `root`, with an untouched starter and no memory of earlier runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for part in _PARTS:
            ignore = shutil.ignore_patterns("__pycache__", "native", "mutants", "alternatives", "_ext*.so")
            shutil.copytree(ROOT / part, root / part, ignore=ignore)
        shutil.copy(ROOT / "pyproject.toml", root)
        shutil.copytree(root / "src" / "tiny_llm", root / "starter")
        self.state = root / ".course" / "state.json"

    def start_over(self) -> None:
        """The untouched starter again, and no memory."""
        shutil.rmtree(self.root / "src" / "tiny_llm", ignore_errors=True)
        shutil.copytree(self.root / "starter", self.root / "src" / "tiny_llm")
        shutil.rmtree(self.state.parent, ignore_errors=True)

    def processes(self) -> list[str]:
        """What still runs for this checkout: command lines of programs that were started in it."""
        import psutil

        found = []
        for process in psutil.process_iter():
            try:
                if process.cwd() == str(self.root) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(" ".join(process.cmdline()))
            except psutil.Error:
                continue
        return found

    @property
    def environment(self) -> dict[str, str]:
        """What makes Python find this checkout."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OTHERS)}
        return kept | {"PYTHONPATH": str(self.root / "src"), "PYTHONUNBUFFERED": "1"}

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """A command of the course."""
        return subprocess.run(
            [sys.executable, "-m", "course", *arguments],
            cwd=self.root,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def file(self, name: str) -> Path:
        """A file of the learner's package."""
        return self.root / "src" / "tiny_llm" / name

    def text(self, name: str) -> str:
        return self.file(name).read_text()

    def write(self, name: str, *functions: str, package: str = "tiny_llm_ref") -> None:
        """Write functions of the reference into the learner's file, as he would write his own."""
        self.file(name).write_text(self.written(name, *functions))

    def written(self, name: str, *functions: str) -> str:
        """The learner's file with functions of the reference in it, and the modules that these import."""
        text = self.text(name)
        theirs = (self.root / "src" / "tiny_llm_ref" / name).read_text()
        for function in functions:
            text = text.replace(_body(text, function), _body(theirs, function))
        needed = [
            line
            for line in theirs.splitlines()
            if line.startswith(("import ", "from ")) and line not in text.splitlines()
        ]
        return text.replace("import mlx.core as mx\n", "\n".join([*needed, "import mlx.core as mx\n"]), 1)


def _body(text: str, function: str) -> str:
    """The lines of a function or method, named as the registry does."""
    import ast

    from course.starter.symbols import definitions

    node = next(d.node for d in definitions(ast.parse(text).body) if d.name == function)
    return "".join(text.splitlines(keepends=True)[node.lineno - 1 : node.end_lineno])
