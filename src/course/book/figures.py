"""`{{#figure NAME "caption"}}`: light and dark SVG of a figure script, its docstring as alt text."""

import ast
import re
from html import escape
from pathlib import Path

from course.book import math
from course.book.page import Page

THEMES = ("light", "dark")
_ARGUMENT = re.compile(r'([a-z0-9-]+)\s+"([^"]+)"')


def render(page: Page, line: int, argument: str, book: Path) -> str:
    """The figure as HTML; the style sheet shows the picture that fits the reader's theme."""
    match = _ARGUMENT.fullmatch(argument.strip())
    if not match:
        raise page.error(line, f"cannot read {argument!r}", 'write {{#figure NAME "caption"}}')
    name, caption = match.groups()
    script = book / "figures" / f"{name}.py"
    if not script.exists():
        raise page.error(line, f"no figure {name!r}", f"write book/figures/{name}.py, see book/README.md")
    for theme in THEMES:
        if not (book / "src" / "figures" / f"{name}-{theme}.svg").exists():
            raise page.error(line, f"figure {name!r} is not drawn", f"run pdm run book --figures {name}")
    alt = escape(alt_text(script))
    images = "".join(
        f'<img class="figure-{theme}" src="{page.root}figures/{name}-{theme}.svg" alt="{alt}">' for theme in THEMES
    )
    text = math.apply(page, caption, line)
    return f'<figure id="figure-{name}">\n{images}\n<figcaption>\n\n{text}\n\n</figcaption>\n</figure>'


def alt_text(script: Path) -> str:
    """The first paragraph of the script's docstring, on one line."""
    text = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())
