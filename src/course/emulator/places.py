"""From an address in a compiled kernel to the line of the Metal source."""

import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from course.emulator.compiler import INCLUDE

_MARKER = re.compile(r'\s*#line (\d+) "(.*)"')
Place = tuple[str, int]


def source_lines(source: str) -> dict[Place, str]:
    """The text of every line of a source, by the file and number that `#line` gives to it."""
    found: dict[Place, str] = {}
    file, number = "kernel", 0
    for text in source.split("\n"):
        marker = _MARKER.match(text)
        if marker:
            file, number = marker[2], int(marker[1]) - 1
        else:
            number += 1
            found[file, number] = text.strip()
    return found


def last_own_lines(lines: Mapping[Place, str], own: frozenset[str]) -> dict[str, Place]:
    """For each generated part of a source, the author's last line before it: what is missing there shows in it."""
    found: dict[str, Place] = {}
    last: Place | None = None
    for (file, number), text in lines.items():
        if file in own:
            last = (file, number) if text else last
        elif last:
            found[file] = last
    return found


def locate(library: Path, addresses: Iterable[int], own: frozenset[str]) -> dict[int, Place]:
    """File and line of return addresses; those that no line of the files `own` made are left out.

    A call that the compiler put inline is told at the caller's line in `own`.
    """
    wanted = sorted({address for address in addresses if address > 1})
    if not wanted:
        return {}
    command = ["addr2line", "-a", "-i", "-e", str(library), *(hex(address - 1) for address in wanted)]
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    found: dict[int, Place] = {}
    address = 0
    for line in output.splitlines():
        if line.startswith("0x"):
            address = int(line, 16) + 1
        elif address not in found:
            place = _own_place(line, own)
            if place:
                found[address] = place
    return found


def own_file(path: str, own: frozenset[str]) -> str | None:
    """Which of the author's files a debugger's path means: it puts a folder in front."""
    if path.startswith(str(INCLUDE)):
        return None
    return next((name for name in sorted(own) if path == name or path.endswith("/" + name)), None)


def _own_place(line: str, own: frozenset[str]) -> Place | None:
    match = re.match(r"(.*):(\d+)(?: \(discriminator \d+\))?$", line)
    file = own_file(match[1], own) if match else None
    return (file, int(match[2])) if match and file else None
