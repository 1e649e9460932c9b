"""One option of a simulation: what values it takes, from text and from TOML, and what it is for.

A mistake is told with the value, the limit and a value that works.
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field
from typing import TypeVar

from course.errors import CourseError
from course.options import number

Value = bool | int | float | str | tuple[str, ...] | None
T = TypeVar("T")


@dataclass(frozen=True)
class Kind:
    """What values an option takes.

    parse: from text; raises argparse.ArgumentTypeError. written: what TOML calls such a value. metavar: in a help text.
    """

    parse: Callable[[str], Value]
    written: str
    metavar: str

    def from_toml(self, value: object) -> Value:
        """The same from a TOML value. Raises argparse.ArgumentTypeError."""
        if isinstance(value, str) != (self.written == "text") or not isinstance(value, str | int | float):
            raise argparse.ArgumentTypeError(f"{value!r} is not {self.written}")
        if isinstance(value, bool) != (self.written == "true or false"):
            raise argparse.ArgumentTypeError(f"{str(value).lower()} is not {self.written}")
        return value if isinstance(value, bool) else self.parse(str(value))


def count(least: int, example: int, most: int = 10**9) -> Kind:
    """Whole numbers from `least` to `most`."""
    parse = limited(number(int, f"of at least {least}", lambda x: x >= least, example), most, example)
    return Kind(parse, "a number", "N")


def positive(example: float, metavar: str = "X", least: float = 1e-6, most: float = 1e9) -> Kind:
    """Numbers above 0; those that are not from `least` to `most` mean nothing here."""
    parse = limited(number(float, "above 0", lambda x: x > 0, example), most, example)
    return Kind(lambda text: _check(parse(text), text, least, example), "a number", metavar)


def at_least(least: float, example: float, metavar: str = "X", most: float = 1e9) -> Kind:
    """Numbers from `least` to `most`."""
    parse = limited(number(float, f"of at least {least:g}", lambda x: x >= least, example), most, example)
    return Kind(parse, "a number", metavar)


def limited(parse: Callable[[str], int | float], most: float, example: float) -> Callable[[str], int | float]:
    """The same, for numbers up to `most`: larger ones are slips, would take for ever, or more memory than there is."""

    def checked(text: str) -> int | float:
        if (value := parse(text)) > most:
            raise argparse.ArgumentTypeError(f"{text!r} is above the limit, {most:,.0f}: try {example}")
        return value

    return checked


def _check(value: float, text: str, least: float, example: float) -> float:
    if value < least:
        raise argparse.ArgumentTypeError(f"{text!r} is below the limit, {least:g}: try {example}")
    return value


def share(example: float) -> Kind:
    """Numbers from 0 to 1."""
    return Kind(number(float, "from 0 to 1", lambda x: 0 <= x <= 1, example), "a number", "X")


def one_of(*names: str) -> Kind:
    """One of a few words."""

    def parse(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(names)}")
        return text

    return Kind(parse, "text", "NAME")


def words(metavar: str) -> Kind:
    """Any text that says something."""

    def parse(text: str) -> str:
        if not text.strip():
            raise argparse.ArgumentTypeError("the text is empty: write at least one word, or leave the option out")
        return text

    return Kind(parse, "text", metavar)


def _burstiness(text: str) -> float:
    if text == "inf":
        return math.inf
    return float(number(float, "above 0, or inf", lambda x: x >= 1e-6, 1)(text))


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text == "true"


BURSTINESS = Kind(_burstiness, "a number", "X")
FLAG = Kind(_flag, "true or false", "")


@dataclass(frozen=True)
class Option:
    """group: its TOML table. key: its TOML key, and its flag without `--`. many: it can be given several times."""

    group: str
    key: str
    kind: Kind
    default: Value
    help: str
    many: bool = False

    @property
    def name(self) -> str:
        """Of the attribute."""
        return self.key.replace("-", "_")

    def read(self, text: str, where: str) -> Value:
        """From text; `where` it stands. Raises CourseError."""
        try:
            return (self.kind.parse(text),) if self.many else self.kind.parse(text)
        except argparse.ArgumentTypeError as error:
            raise CourseError(f"{where}: {error}") from None

    def read_toml(self, value: object, where: str) -> Value:
        """From a TOML value. Raises CourseError."""
        try:
            if not self.many:
                return self.kind.from_toml(value)
            if not isinstance(value, list):
                raise argparse.ArgumentTypeError(f'{value!r} is not a list: write {self.key} = ["..."]')
            return tuple(str(self.kind.from_toml(one)) for one in value)
        except argparse.ArgumentTypeError as error:
            raise CourseError(f"{where}: {error}") from None


def option(default: T, kind: Kind, help: str, many: bool = False) -> T:
    """A field of a group of options."""
    return field(default=default, metadata={"kind": kind, "help": help, "many": many})


def options_of(group: str, kind: type) -> list[Option]:
    """The options of a group: a dataclass whose fields were made by `option`."""
    found = []
    for each in kind.__dataclass_fields__.values():
        assert each.default is not MISSING
        about = each.metadata
        key = each.name.replace("_", "-")
        found.append(Option(group, key, about["kind"], each.default, about["help"], about["many"]))
    return found
