"""Which C++ compiler there is, and whether it makes a C++20 program that runs."""

import subprocess
import tempfile
from pathlib import Path

from course.doctor.finding import COMPILED, Finding
from course.errors import CourseError
from course.toolchain import find_compiler

FIXES = {"debian": "apt install g++", "macos": "xcode-select --install"}
_SECONDS = 30
_PROGRAM = """
#include <span>
#include <vector>
int main() {
  std::vector<int> numbers{1, 2, 3};
  int sum = 0;
  for (int number : std::span(numbers)) sum += number;
  return sum == 6 ? 0 : 1;
}
"""


def probe(full: bool) -> Finding:
    """Found, runs, and links against its own standard library."""
    try:
        compiler = find_compiler()
    except CourseError as error:
        return Finding.fail(str(error).partition(":")[0], stops=COMPILED, **FIXES)
    status, said = _run([compiler, "--version"])
    if status:
        return Finding.fail(f"{compiler} --version fails: {said}", stops=COMPILED, **FIXES)
    version = said
    with tempfile.TemporaryDirectory(prefix="tiny-llm-") as folder:
        source, program = Path(folder) / "small.cpp", Path(folder) / "small"
        source.write_text(_PROGRAM)
        status, said = _run([compiler, "-std=c++20", "-o", str(program), str(source)])
        if status:
            newer = {"debian": "apt install g++ (version 11 or later)", "macos": "xcode-select --install"}
            return Finding.fail(f"{version} builds no C++20 program: {said}", stops=COMPILED, **newer)
        status, said = _run([str(program)])
    if status:
        return Finding.fail(f"{version}: its program does not run: {said}", stops=COMPILED, **FIXES)
    return Finding.ok(f"{version} ({compiler})")


def _run(command: list[str]) -> tuple[int, str]:
    """Exit status, and the first line that was printed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    lines = [*(errors or done.stderr.splitlines()), ""] if done.returncode else [*done.stdout.splitlines(), ""]
    return done.returncode, lines[0] or f"exit status {done.returncode}"
