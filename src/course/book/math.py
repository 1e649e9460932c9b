"""Math: `$...$` and `$$...$$` become MathML at build time. It knows TeX delimiters and what latex2mathml gets wrong."""

import re

from course.book.page import Page, Segment, map_prose

_MATH = re.compile(
    r"\\\$"  # an escaped dollar
    r"|\$\$(?P<display>(?:(?!\$|\n[ \t]*\n).)+)\$\$"
    r"|\$(?!\s)(?P<inline>(?:(?!\$|\n[ \t]*\n).)+?)(?<!\s)\$"
    r"|(?P<lone>\$)",
    re.DOTALL,
)
_UNKNOWN = re.compile(r">\s*(\\[A-Za-z]+)\s*<")
_MARKDOWN = "\\`*_{}[]#|~!"
_FUNCTION = re.compile(r'(</m[ni]>|)<mi>(arg|cos|exp|ln|log|sin|tan|tanh)</mi>(<mo stretchy="false">&#x00028;|)')
_SIGN = re.compile(
    r"(<mo[^>]*>(?!&#x0002[19];|&#x0005D;|&#x0007[CD];|\)|\||\])[^<]+</mo>)<mo>&#x02212;</mo>"
)  # after no closer
_ENVIRONMENTS = {"aligned": "split", "align": "align*"}  # latex2mathml knows only the second


def apply(page: Page, text: str, line: int = 1) -> str:
    """The text with all math outside code as MathML; `line` is where the text starts, for errors."""

    def prose(segment: Segment) -> str:
        def one(match: re.Match[str]) -> str:
            at = line + segment.line - 1 + segment.text.count("\n", 0, match.start())
            if match["lone"]:
                raise page.error(at, "a '$' without its partner", r"close the math, or write \$ for a dollar sign")
            tex = match["display"] or match["inline"]
            if tex is None:
                return match.group()
            try:
                return to_mathml(tex.strip(), display=match["display"] is not None)
            except ValueError as error:
                raise page.error(at, f"bad TeX {tex.strip()!r}: {error}", "correct the formula") from error

        return _MATH.sub(one, segment.text)

    return map_prose(text, prose)


def to_mathml(tex: str, display: bool = False) -> str:
    """MathML on one line, with Markdown's own characters escaped. Raises ValueError for TeX that is not understood."""
    from latex2mathml.converter import convert

    for given, known in _ENVIRONMENTS.items():
        tex = tex.replace(f"{{{given}}}", f"{{{known}}}")
    _check_braces(tex)
    try:
        markup = convert(tex, display="block" if display else "inline")
    except Exception as error:  # latex2mathml raises bare exceptions of many classes, named after the mistake
        raise ValueError(type(error).__name__.removesuffix("Error")) from error
    markup = re.sub(r"\\([_%#])", r"\1", markup)  # latex2mathml leaves these escapes in \text
    if unknown := _UNKNOWN.search(markup):
        raise ValueError(f"unknown command {unknown[1]}")
    if ">&<" in markup:
        raise ValueError("an '&' outside a matrix or an aligned environment")
    markup = _space(markup.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "").replace("\n", " "))
    markup = re.sub(r">([^<]+)<", lambda m: f">{_escape(m[1])}<", markup)
    return f'<span class="math-display">{markup}</span>' if display else markup


def _space(markup: str) -> str:
    """Spaces as in TeX: none around a slash, dots and infinity or after a sign, thin ones around a function's name."""
    markup = markup.replace("<mo>&#x0221E;</mo>", "<mi>&#x0221E;</mi>")
    markup = _SIGN.sub(r'\1<mo form="prefix">&#x02212;</mo>', markup)
    markup = re.sub(r"<mo>(/|&#x0002F;|&#x02026;)</mo>", r'<mo lspace="0" rspace="0">\1</mo>', markup)

    def function(match: re.Match[str]) -> str:
        left = "0.167em" if match[1] else "0"
        right = "0" if match[3] else "0.167em"
        return f'{match[1]}<mo lspace="{left}" rspace="{right}">{match[2]}</mo>{match[3]}'

    return _FUNCTION.sub(function, markup)


def _check_braces(tex: str) -> None:
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", tex):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            break
    if depth:
        raise ValueError("unbalanced braces")


def _escape(text: str) -> str:
    entities = re.split(r"(&[#\w]+;)", text)
    return "".join(
        e if i % 2 else "".join(f"&#{ord(c)};" if c in _MARKDOWN else c for c in e) for i, e in enumerate(entities)
    )
