"""Numbers on the command line, checked as they are read: the message names the value, the limit and one that works."""

import argparse
import math
from collections.abc import Callable

Number = int | float


def number(kind: type[Number], limit: str, holds: Callable[[Number], bool], example: Number) -> Callable[[str], Number]:
    """An argparse `type` for finite numbers for which `holds`; `limit` says so in words, `example` is a valid one."""

    def parse(text: str) -> Number:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or not holds(value):
            noun = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r} is not {noun} {limit}: try {example}")
        return value

    return parse


def non_blank(text: str) -> str:
    """An argparse `type` for text that must say something."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"the text {text!r} is empty: write at least one word")
    return text


def non_empty(text: str) -> str:
    """An argparse `type` for text that must hold something."""
    if not text:
        raise argparse.ArgumentTypeError("the text is empty: give at least one character")
    return text
