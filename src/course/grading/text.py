"""Text from strangers made fit for files and terminals: file names, messages, names of students.

Removes what steers a terminal or turns a line around, and what JSON and XML cannot hold."""

import re
from collections.abc import Sequence

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")  # all but newline and tab; lone surrogates
_STEERING = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufffe\uffff]")  # direction, width 0
_SEQUENCE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)", re.DOTALL)

FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""What begins a formula in a spreadsheet; some read the wide signs as the plain ones."""


def clean(text: str, most: int = 4000) -> str:
    """The text without escape sequences, control characters and lone surrogates, cut where it is long."""
    text = _SEQUENCE.sub("", text[: 4 * most].replace("\r\n", "\n"))
    text = _CONTROL.sub("\ufffd", _STEERING.sub("", text))
    return text if len(text) <= most else f"{text[:most]} ... (cut)"


def one_line(text: str, most: int = 200) -> str:
    """The same on one line."""
    return " ".join(clean(text, most).split())


def code(name: str) -> str:
    """A name on one line, as code in Markdown."""
    plain = one_line(name, 80).replace("`", "'")
    return f"`{plain}`"


def few(names: Sequence[str], most: int = 5) -> str:
    """The first of some names, and how many there are beside them."""
    shown = ", ".join(one_line(name, 80) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
