"""What a failed build says, told in a few lines: file, line and text of the first errors.

Files are named relative to the source folder."""

import re
from pathlib import Path

_COMPILER = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$")
_CMAKE = re.compile(r"^CMake Error at (?P<file>\S+?):(?P<line>\d+) \(.*\):$")
_LINKER = re.compile(r"(undefined reference to .*|multiple definition of .*|duplicate symbol .*)$")
_MOST_ERRORS = 3
_MOST_LINES = 12
_NEAR = 12


def summary(output: str, source: Path) -> str:
    """The first errors in a compiler's, linker's or CMake's output; its last lines where none is recognised."""
    lines = output.replace(f"../{source.name}/", f"{source}/").splitlines()  # ccache lets compilers name it so
    errors = list(dict.fromkeys(filter(None, (_error(lines, index, source) for index in range(len(lines))))))
    if not errors:
        return "\n".join(line for line in lines[-_MOST_LINES:] if line.strip()) or "(it printed nothing)"
    rest = len(errors) - _MOST_ERRORS
    return "\n".join([*errors[:_MOST_ERRORS], *([f"and {rest} more"] if rest > 0 else [])])


def _error(lines: list[str], index: int, source: Path) -> str | None:
    line = lines[index]
    if found := _COMPILER.match(line):
        return f"{_place(found, source)}: {found['text']}{_origin(lines, index, found['file'], source)}"
    if found := _CMAKE.match(line):
        text = next((text.strip() for text in lines[index + 1 :] if text.strip()), "")
        return f"{_place(found, source)}: {text}"
    if found := _LINKER.search(line):
        return found[1]
    return None


def _place(found: re.Match[str], source: Path) -> str:
    path = Path(found["file"])
    return f"{path.relative_to(source) if path.is_relative_to(source) else path}:{found['line']}"


def _origin(lines: list[str], index: int, file: str, source: Path) -> str:
    """For an error inside a library's header: the nearest line of the source folder that led to it."""
    if Path(file).is_relative_to(source):
        return ""
    near = [*lines[max(0, index - _NEAR) : index][::-1], *lines[index + 1 : index + _NEAR]]
    place = re.compile(rf"{re.escape(str(source))}/(\S+?:\d+)")
    found = next((found for line in near if (found := place.search(line))), None)
    return f" (from {found[1]})" if found else ""
