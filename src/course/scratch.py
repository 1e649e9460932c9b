"""A scratch copy of a package, changed at will, and graded in a process of its own that imports the copy."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from course.errors import CourseError
from course.paths import REFERENCE, ROOT, SRC, extension_folder
from course.summary import Result
from course.warm import run_pytest

# Only what grading needs: other plugins take half the time of a run.
_PYTEST = (
    *("-qq", "--tb=no", "-rN", "--no-header", "--disable-warnings"),
    *("--import-mode=importlib", "-p", "no:cacheprovider"),
)
_PLUGINS = ("-p", "course.plugin", "-p", "pytest_timeout")


@dataclass(frozen=True)
class Report:
    """What a graded run left: pytest's exit status (or `warm.TIMED_OUT`), its cases' results, and what it printed."""

    status: int
    results: list[Result]
    output: str

    def names(self, kind: str) -> list[str]:
        """Names of the cases that ended as `kind`, without their numbers, in order and once each."""
        return list(dict.fromkeys(result.name.partition("[")[0] for result in self.results if result.kind == kind))


@contextmanager
def scratch(package: Path = REFERENCE) -> Iterator[Path]:
    """A copy of `package`, with its C++ and Metal sources beside it, in a folder of its own, removed afterwards.

    A library that is built comes with it, so only changed C++ sources are compiled again.
    """
    with tempfile.TemporaryDirectory(prefix="tiny-llm-") as folder:
        copy = Path(folder) / package.name
        left = shutil.ignore_patterns("__pycache__", "build")
        shutil.copytree(package, copy, ignore=left)
        if extension_folder(package).is_dir():
            shutil.copytree(extension_folder(package), extension_folder(copy), ignore=left)
        yield copy


@contextmanager
def workers(jobs: int) -> Iterator[Callable]:
    """A `map` that works on `jobs` items at a time; after Ctrl-C no further item is begun."""
    if jobs < 1:
        raise CourseError(f"--jobs {jobs} is less than 1")
    pool = ThreadPoolExecutor(jobs)
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)


def grade(package: Path, tests: list[Path], *options: str, timeout: float = 600.0) -> Report:
    """Run the graded `tests` against the copy `package`. A run that takes longer than `timeout` seconds is killed.

    Cases have limits of their own; this one is for what they do not cover, and includes waiting for a compiler.
    """
    results = package.parent / "results.json"
    results.unlink(missing_ok=True)
    arguments = [*_PYTEST, *_PLUGINS, "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml")]
    arguments += ["--solution", package.name, "--results", str(results), *options, *map(str, tests)]
    environment = {key: value for key, value in os.environ.items() if key != "PYTEST_ADDOPTS"} | {
        "PYTHONPATH": os.pathsep.join([str(package.parent), str(SRC)]),
        "PYTHONDONTWRITEBYTECODE": "1",  # two changes within a second would share one .pyc file
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    status, output = run_pytest(arguments, environment, timeout)
    written = json.loads(results.read_text()) if results.exists() else []
    return Report(status, [Result(**result) for result in written], output)
