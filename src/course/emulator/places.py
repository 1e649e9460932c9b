"""From an address in a compiled kernel to the line of the Metal source."""

import re
import subprocess
import sys
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
    frames = _atos if sys.platform == "darwin" else _addr2line
    try:
        found = frames(library, wanted) if wanted else {}
    except (OSError, subprocess.SubprocessError):
        return {}
    places = {address: next(filter(None, (_own(frame, own) for frame in found[address])), None) for address in found}
    return {address: place for address, place in places.items() if place}


def own_file(path: str, own: frozenset[str]) -> str | None:
    """Which of the author's files a debugger's path means: it puts a folder in front."""
    if path.startswith(str(INCLUDE)):
        return None
    return next((name for name in sorted(own) if path == name or path.endswith("/" + name)), None)


def _own(frame: Place, own: frozenset[str]) -> Place | None:
    file = own_file(frame[0], own)
    return (file, frame[1]) if file else None


def _addr2line(library: Path, addresses: list[int]) -> dict[int, list[Place]]:
    """For each address the places of its frames, innermost first."""
    output = _output(["addr2line", "-a", "-i", "-e", str(library), *(hex(address - 1) for address in addresses)])
    found: dict[int, list[Place]] = {}
    frames: list[Place] = []
    for line in output.splitlines():
        place = re.match(r"(.*):(\d+)(?: \(discriminator \d+\))?$", line)
        if line.startswith("0x"):
            frames = found.setdefault(int(line, 16) + 1, [])
        elif place:
            frames.append((place[1], int(place[2])))
    return found


def _atos(library: Path, addresses: list[int]) -> dict[int, list[Place]]:
    """The same on a Mac, whose tool tells the files' names without folders."""
    found = {}
    for address in addresses:
        output = _output(["atos", "-i", "-o", str(library), "-l", "0x0", hex(address - 1)])
        found[address] = [
            (file, int(line)) for file, line in re.findall(r"\(([^()\n]+):(\d+)\)$", output, re.MULTILINE)
        ]
    return found


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
