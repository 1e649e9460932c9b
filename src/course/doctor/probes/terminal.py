"""The terminal: as the parent sees it, which passes it on in the environment."""

import os

from course.doctor.finding import Finding

COLUMNS = 80
SEEN = "TINY_LLM_TERMINAL"
"""Environment variable: "COLUMNS ENCODING" of the terminal, or "" where output is no terminal."""


def probe(full: bool) -> Finding:
    """Width, colour and encoding."""
    columns, _, encoding = os.environ.get(SEEN, "").partition(" ")
    if not columns:
        return Finding.ok("output is no terminal: no colour")
    colour = "no colour (NO_COLOR is set)" if os.environ.get("NO_COLOR") else f"TERM={os.environ.get('TERM', 'none')}"
    found = f"{columns} columns, {encoding}, {colour}"
    if encoding.lower().replace("-", "") != "utf8":
        return Finding.warn(f"{found}: some signs cannot be shown", "export LC_ALL=C.UTF-8")
    if int(columns) < COLUMNS:
        return Finding.warn(f"{found}: tables are made for {COLUMNS}", "make the window wider")
    return Finding.ok(found)
