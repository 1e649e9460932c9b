"""Which thread touches which element: one threadgroup's memory accesses as an SVG picture."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

import numpy as np

from course.emulator.places import locate
from course.emulator.runtime import TRACE_DTYPE, Record
from course.emulator.session import Launch

TRACE = np.dtype(TRACE_DTYPE)
COLUMNS, ROWS = 32, 8  # of elements shown per panel
LANES = 32
_CELL, _LEFT, _TITLE, _GAP = 22, 64, 40, 14
_HUES = (210, 30, 120, 280, 0, 170, 60, 320)  # one per simdgroup, then again


@dataclass(frozen=True)
class Panel:
    """One kind of access to one piece of memory: who touched each element first, and how many threads did."""

    name: str
    verb: str
    lines: tuple[int, ...]
    size: int
    threads: dict[int, tuple[int, int]]
    accesses: int


def panels(record: Record, launch: Launch) -> list[Panel]:
    """The panels of a traced launch, reads before writes, buffers in order and threadgroup memory last."""
    trace = np.frombuffer(record.trace, TRACE)
    places = locate(launch.library, set(trace["pc"].tolist()), launch.own)
    found = []
    for buffer in sorted(set(trace["buffer"].tolist()), key=lambda index: (index < 0, index)):
        for write in (0, 1):
            part = trace[(trace["buffer"] == buffer) & (trace["write"] == write)]
            if len(part):
                name = launch.buffers[buffer].name if buffer >= 0 else "threadgroup memory"
                found.append(_panel(name, "writes" if write else "reads", part, places))
    return found


def _panel(name: str, verb: str, part: np.ndarray, places: dict[int, tuple[str, int]]) -> Panel:
    size = int(part["size"].min())
    start = 0 if part["buffer"][0] >= 0 else int(part["offset"].min()) // 128 * 128  # where threadgroup memory begins
    first: dict[int, int] = {}
    sharers: dict[int, set[int]] = {}
    offsets, threads, widths = (part[name].astype(np.int64).tolist() for name in ("offset", "thread", "size"))
    for offset, thread, width in zip(offsets, threads, widths, strict=True):
        offset -= start
        for element in range(offset // size, (offset + width + size - 1) // size):
            first.setdefault(element, thread)
            sharers.setdefault(element, set()).add(thread)
    lines = sorted({places[pc][1] for pc in set(part["pc"].tolist()) if pc in places})
    touched = {element: (first[element], len(sharers[element])) for element in sorted(first)}
    return Panel(name, verb, tuple(lines), size, touched, len(part))


def svg(record: Record, launch: Launch, threadgroup: int = 0) -> str:
    """The access map of a launch that was made with `trace=threadgroup`.

    A panel per buffer and direction; a row of 32 elements each; a cell holds the number of the thread that touched the
    element first and is coloured by simdgroup and lane. A dot marks an element that several threads touched.
    """
    shown = panels(record, launch)
    head = f"{launch.kernel}: memory accesses of threadgroup {threadgroup}, {record.threadgroup[0]}"
    head += f" x {record.threadgroup[1]} x {record.threadgroup[2]} threads"
    body, top = [_text(10, 24, head, 15, "bold")], 40
    for panel in shown:
        body += _draw(panel, top, launch.file)
        top += _TITLE + _CELL * len(_rows(panel)) + _GAP
    if not shown:
        body.append(_text(10, top + 16, "no memory access was recorded", 13))
        top += 30
    width = _LEFT + COLUMNS * _CELL + 12
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" width="{width}" height="{top}" '
        f'role="img" font-family="sans-serif"><title>{escape(head)}</title>'
        f'<rect width="{width}" height="{top}" fill="white"/>' + "".join(body) + "</svg>\n"
    )


def _rows(panel: Panel) -> list[int]:
    """The first rows of elements that hold a touched one."""
    return sorted({element // COLUMNS for element in panel.threads})[:ROWS]


def _draw(panel: Panel, top: int, file: str) -> Iterator[str]:
    rows = _rows(panel)
    total = len({element // COLUMNS for element in panel.threads})
    where = f" at {file}:{', '.join(map(str, panel.lines))}" if panel.lines else ""
    title = f"{panel.verb} {panel.name}{where}: accesses {panel.accesses}, elements {len(panel.threads)}, "
    title += f"{panel.size} bytes each" + (f" (first {ROWS} of {total} rows)" if total > ROWS else "")
    yield _text(10, top + 22, title, 13)
    for place, row in enumerate(rows):
        y = top + _TITLE - 8 + place * _CELL
        yield _text(_LEFT - 6, y + 15, str(row * COLUMNS), 10, anchor="end")
        for column in range(COLUMNS):
            yield _cell(panel, row * COLUMNS + column, _LEFT + column * _CELL, y)


def _cell(panel: Panel, element: int, x: int, y: int) -> str:
    if element not in panel.threads:
        return f'<rect x="{x}" y="{y}" width="{_CELL - 2}" height="{_CELL - 2}" fill="#f2f2f2"/>'
    thread, sharers = panel.threads[element]
    hue = _HUES[thread // LANES % len(_HUES)]
    colour = f"hsl({hue},70%,{88 - 40 * (thread % LANES) // (LANES - 1)}%)"
    told = f"element {element}: thread {thread}" + (f" and {sharers - 1} more" if sharers > 1 else "")
    dot = f'<circle cx="{x + _CELL - 6}" cy="{y + 4}" r="2"/>' if sharers > 1 else ""
    return (
        f'<g><title>{told}</title><rect x="{x}" y="{y}" width="{_CELL - 2}" height="{_CELL - 2}" fill="{colour}"/>'
        f"{_text(x + _CELL // 2 - 1, y + 14, str(thread), 9, anchor='middle')}{dot}</g>"
    )


def _text(x: int, y: int, text: str, size: int, weight: str = "normal", anchor: str = "start") -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}">{escape(text)}</text>'
    )
