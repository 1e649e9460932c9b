"""`<dfn>KV cache</dfn>` becomes a link to the glossary's entry. It knows the glossary's terms and their ids."""

import re

from course.book.page import PROSE, Page, blocks, map_prose

PATH = "glossary.md"
DFN = re.compile(r"<dfn>(.+?)</dfn>", re.DOTALL)
_TERM = re.compile(r"^(?P<term>[^\n:][^\n]*)\n(?=: )", re.MULTILINE)


def terms(text: str) -> list[tuple[str, int]]:
    """Every defined term of the glossary with its line: `term` above a line that starts with `: `."""
    found = []
    for block in blocks(text):
        if block.kind == PROSE:
            matches = _TERM.finditer(block.text)
            found += [(m["term"].strip(), block.line + block.text.count("\n", 0, m.start())) for m in matches]
    return found


def key(term: str) -> str:
    """What makes two spellings the same term: no case, no formatting, no plural s."""
    plain = re.sub(r"[*_`$]", "", " ".join(term.split())).lower()
    return plain.removesuffix("s") if not plain.endswith("ss") else plain


def slug(term: str) -> str:
    """The id mdBook gives the term in a definition list."""
    plain = re.sub(r"[^\w\s-]", "", term.strip().lower())
    return re.sub(r"\s", "-", plain)


def apply(page: Page, text: str, known: dict[str, str]) -> str:
    """Link every `<dfn>` outside code to its entry; `known` maps a term's key to its id. Unknown: a lint."""

    def one(match: re.Match[str]) -> str:
        entry = known.get(key(match[1]))
        return f'<dfn><a href="{page.root}glossary.html#{entry}">{match[1]}</a></dfn>' if entry else match[0]

    return map_prose(text, lambda segment: DFN.sub(one, segment.text))
