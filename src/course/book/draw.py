"""Draws the book's figures: runs `draw(theme)` of each script in `book/figures` and writes a light and a dark SVG."""

import importlib.util
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from course.book.build import INSTALL
from course.errors import CourseError
from course.paths import BOOK

SCRIPTS = BOOK / "figures"
PICTURES = BOOK / "src" / "figures"


def names() -> list[str]:
    """All figures, by file name."""
    return sorted(p.stem for p in SCRIPTS.glob("*.py"))


def redraw(wanted: Sequence[str] = ()) -> Iterator[Path]:
    """Draw the wanted figures, or all, and yield each file written. Raises CourseError for an unknown name."""
    if unknown := sorted(set(wanted) - set(names())):
        raise CourseError(f"no figure {unknown[0]!r}: choose from {', '.join(names())}")
    PICTURES.mkdir(exist_ok=True)
    for name in wanted or names():
        for theme, svg in drawings(name).items():
            path = PICTURES / f"{name}-{theme}.svg"
            path.write_text(svg, encoding="utf-8")
            yield path


def drawings(name: str) -> dict[str, str]:
    """The SVG of one figure by theme name."""
    try:
        from course.book import style
    except ImportError as error:
        raise CourseError(f"the package {error.name} is not installed: {INSTALL}") from error
    path = SCRIPTS / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"figure_{name.replace('-', '_')}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    result = {}
    for theme in style.THEMES:
        with style.settings(theme):
            out = io.StringIO()
            module.draw(theme).savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
            result[theme.name] = _small(out.getvalue())
    return result


def _small(svg: str) -> str:
    """A hundredth of a point is enough, at less than half the size; also no trailing spaces."""
    svg = re.sub(r"-?\d+\.\d{3,}", _short, svg)
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def _short(number: re.Match[str]) -> str:
    value = float(number[0])
    if abs(value) < 1:  # scales of glyphs are small and must stay exact
        return f"{value:.6g}" if "e" not in f"{value:.6g}" else "0"
    return f"{value:.2f}".rstrip("0").rstrip(".")
