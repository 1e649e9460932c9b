"""A run as one HTML page that needs nothing else: no network, no server."""

import json
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from course.sim.page_data import MOST_WORKERS, page_data
from course.sim.report import Json
from course.sim.table import sections

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.run import Run

WEB = Path(__file__).with_name("web")


def write_page(path: Path, run: "Run", numbers: Json, config: str) -> None:
    """Write it. config: the TOML file of the run. Raises OSError."""
    data = page_data(run, numbers)
    parts = {
        "style": _read("page.css"),
        "script": _read("page.js"),
        "data": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        "summary": _summary(numbers),
        "notes": _notes(data["notes"], len(run.notes)),
        "config": escape(config),
        "window": escape(_window(numbers)),
        "left_out": f"Shown are the first {MOST_WORKERS} of {len(run.workers)} workers." if data["left_out"] else "",
    }
    page = _read("page.html")
    for name, text in parts.items():
        page = page.replace(f"<!--{name}-->", text, 1)
    path.write_text(page, encoding="utf-8")


def _read(name: str) -> str:
    return (WEB / name).read_text(encoding="utf-8")


def _window(numbers: Json) -> str:
    window, seed = numbers["window"], numbers["config"]["goals"]["seed"]
    return f"Measured: {window['name']}, {window['start_s']:,.2f} to {window['end_s']:,.2f} s. Seed {seed}."


def _summary(numbers: Json) -> str:
    boxes = []
    for heading, rows in sections(numbers):
        if rows:
            body = "".join(f"<tr><th>{escape(name)}<td>{escape(value)}" for name, value in rows)
            boxes.append(f"<table><caption>{escape(heading or 'Requests')}</caption>{body}</table>")
    return "\n".join(boxes)


def _notes(notes: list[list[object]], in_all: int) -> str:
    if not notes:
        return "<p>Nothing happened to the deployment.</p>"
    rows = "".join(
        f"<tr><td>{time:,.3f}<td>{escape(kind)}<td>{escape(worker)}<td>{escape(text)}"
        for time, kind, worker, text in notes
    )
    more = f"<p>The first {len(notes)} of {in_all}.</p>" if in_all > len(notes) + 64 else ""
    return f"<table><tr><th>s<th>what<th>worker<th>{rows}</table>{more}"
