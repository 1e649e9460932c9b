"""Where a configuration comes from: a TOML file, and flags that win over it.

A file has the tables and keys of `sim run --print-config`, which prints all that was chosen.
"""

import argparse
import json
from collections.abc import Mapping
from difflib import get_close_matches
from itertools import combinations
from pathlib import Path

from course.errors import CourseError
from course.sim.config import GROUPS, OPTIONS
from course.sim.option import FLAG, Value
from course.solutions import add_solution

SHAPE = {"input-mean", "input-cv", "output-mean", "output-cv"}
PREFIXES = {"prefixes", "prefix-tokens", "prefix-zipf"}
PACE = {"rate", "burstiness"}
REPLAY = {"speed-up", "jitter"}
RIVALS = {
    "workers": {"prefill-workers", "decode-workers"},
    "trace": {"concurrency", "sessions", "turns", "think"} | SHAPE | PREFIXES | PACE,
    "speed-up": {"concurrency", "sessions"} | PACE,
    "jitter": {"concurrency", "sessions"} | PACE,
    "concurrency": {"sessions", "turns"} | PREFIXES | PACE,
    "sessions": {"requests"} | PREFIXES,
}
"""What cannot be chosen together. What wins over a file wins over the rivals there, too."""
NEEDS = {"turns": "sessions", "prefix-tokens": "prefixes", "prefix-zipf": "prefixes"} | dict.fromkeys(REPLAY, "trace")
"""What says something only with another."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The configuration file, and a flag for each option."""
    parser.add_argument("config", nargs="?", type=Path, metavar="FILE.toml", help="a configuration; flags win over it")
    add_solution(parser, "whose code runs")
    for group, kind in GROUPS.items():
        box = parser.add_argument_group(f"[{group}]", kind.__doc__)
        for one in (one for one in OPTIONS.values() if one.group == group):
            plain = one.default is None or one.default == () or one.kind is FLAG
            text = (one.help if plain else f"{one.help} (default {_text(one.default)})").replace("%", "%%")
            dest = {"dest": f"option:{one.key}", "default": argparse.SUPPRESS, "help": text}
            if one.kind is FLAG:
                box.add_argument(f"--{one.key}", action=argparse.BooleanOptionalAction, **dest)
            else:
                action = "append" if one.many else "store"
                box.add_argument(f"--{one.key}", type=one.kind.parse, action=action, metavar=one.kind.metavar, **dest)


def chosen(args: argparse.Namespace) -> dict[str, Value]:
    """All that the file and the flags say, by key. Raises CourseError."""
    flags = {key.removeprefix("option:"): value for key, value in vars(args).items() if key.startswith("option:")}
    flags = {key: tuple(value) if OPTIONS[key].many else value for key, value in flags.items()}
    base = {} if args.config is None else read_config(args.config)
    return merged(base, flags, f"{args.config}", "the flags")


def merged(base: Mapping[str, Value], over: Mapping[str, Value], *names: str) -> dict[str, Value]:
    """`over` wins over `base`, and over the rivals there of what it says. names: of both. Raises CourseError."""
    for layer, name in zip((base, over), names, strict=True):
        for first, second in combinations(layer, 2):
            if _rivals(first, second):
                raise CourseError(f"{name}: {first} and {second} exclude each other: leave one out")
    beaten = {key for key in base for other in over if _rivals(key, other)}
    both = {key: value for key, value in base.items() if key not in beaten} | dict(over)
    for key, needed in NEEDS.items():
        if key in both and needed not in both:
            raise CourseError(f"{key} says nothing without {needed}: add {needed}, or leave it out")
    return both


def _rivals(first: str, second: str) -> bool:
    return second in RIVALS.get(first, ()) or first in RIVALS.get(second, ())


def read_config(path: Path) -> dict[str, Value]:
    """The values of a file, by key. Raises CourseError for what no option is called, or takes."""
    import tomllib

    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise CourseError(f"cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CourseError(f"{path} is no TOML file: {error}: `sim run --print-config` prints one") from None
    found: dict[str, Value] = {}
    for group, table in tables.items():
        if group not in GROUPS:
            raise CourseError(f"{path}: {_unknown(group, GROUPS, 'table')}")
        if not isinstance(table, dict):
            raise CourseError(f"{path}: {group} = {table!r} is not a table: write [{group}], and keys under it")
        mine = {one.key: one for one in OPTIONS.values() if one.group == group}
        for key, value in table.items():
            if key not in mine:
                raise CourseError(f"{path}: [{group}] {_unknown(key, mine, 'key')}")
            found[key] = mine[key].read_toml(value, f"{path}: [{group}] {key}")
    return found


def _unknown(name: str, known: Mapping[str, object], noun: str) -> str:
    if name in OPTIONS:
        return f"{name} stands in another table: move it to [{OPTIONS[name].group}]"
    near = get_close_matches(name, known, 1)
    return f"no {noun} {name!r}: " + (f"did you mean {near[0]}?" if near else f"choose from {', '.join(known)}")


def write_config(chosen: Mapping[str, Value]) -> str:
    """The TOML file of what was chosen. Options that were not stand there as comments, with their defaults."""
    lines = []
    for group in GROUPS:
        lines += ["", f"[{group}]"]
        for one in (one for one in OPTIONS.values() if one.group == group):
            value = chosen.get(one.key, one.default)
            mark = "" if one.key in chosen else "# "
            lines.append(f"{mark}{one.key} = {'...' if value is None else _toml(value)}")
    return "\n".join(lines[1:]) + "\n"


def _toml(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _text(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
