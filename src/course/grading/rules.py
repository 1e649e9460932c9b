"""What each key of `course.toml` may hold. A wrong one is told in one line: file, key, value, limit and an example."""

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from typing import NamedTuple

from course.errors import CourseError
from course.grading.source import is_setting
from course.leaderboard import NAMES

VISIBILITIES = ("visible", "after_due_date", "after_published", "hidden")
"""As Gradescope names them, the most open first."""
SHOWS = ("properties", "verdict", "nothing")
"""What students see of hidden variants: which properties fail, only whether all hold, not even that."""
_NUMBER = re.compile(r"\d+(\.\d+){0,2}")
_FILE = re.compile(r"[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*\.(py|cpp|h|hpp|metal)")


class Rule(NamedTuple):
    """`limit` says in words what `holds` checks; `example` is TOML."""

    limit: str
    holds: Callable[[object], bool]
    example: str


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def whole(least: int, most: int, example: int) -> Rule:
    def holds(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

    return Rule(f"a whole number from {least} to {most}", holds, str(example))


def real(least: float, most: float, example: float) -> Rule:
    holds = lambda value: is_number(value) and least <= value <= most  # noqa: E731
    return Rule(f"a number from {least:g} to {most:g}", holds, f"{example:g}")


def one_of(choices: Iterable[str]) -> Rule:
    names = tuple(choices)
    return Rule(f"one of {', '.join(names)}", lambda value: value in names, f'"{names[0]}"')


def text(limit: str, example: str) -> Rule:
    return Rule(limit, lambda value: isinstance(value, str) and bool(value.strip()), f'"{example}"')


def listed(limit: str, holds: Callable[[object], bool], example: str) -> Rule:
    def all_hold(value: object) -> bool:
        return isinstance(value, list) and bool(value) and all(map(holds, value)) and len(set(value)) == len(value)

    return Rule(f"a list of {limit}, each once", all_hold, example)


_TIME = Rule(
    "a date with time and offset",
    lambda value: isinstance(value, datetime) and value.tzinfo is not None,
    "2027-01-31T23:59:00+01:00",
)
TABLES: dict[str, dict[str, Rule]] = {
    "": {
        "title": text("a text", "Serving LLMs, spring"),
        "extra_files": listed(
            "files of the package or extension",
            lambda value: isinstance(value, str) and bool(_FILE.fullmatch(value)) and not is_setting(value),
            '["model/helpers.py"]',
        ),
    },
    "graded": {
        "weeks": listed("numbers of weeks", lambda value: isinstance(value, int) and value > 0, "[1, 2]"),
        "days": listed(
            "days as texts", lambda value: isinstance(value, str) and bool(re.fullmatch(r"\d+\.\d+", value)), '["3.1"]'
        ),
    },
    "points": {"*": real(0, 10_000, 20)},
    "visibility": {"default": one_of(VISIBILITIES), "hidden": one_of(VISIBILITIES), "*": one_of(VISIBILITIES)},
    "hidden": {
        "seeds": whole(1, 20, 2),
        "share": real(0.01, 1, 0.3),
        "file": text("the name of a file with the secret", "secret/seeds"),
        "variable": text("the name of an environment variable with the secret", "TINY_LLM_SEEDS"),
        "show": one_of(SHOWS),
    },
    "late": {
        "deadline": _TIME,
        "grace_minutes": whole(0, 1440, 10),
        "free_days": whole(0, 365, 3),
        "percent_per_day": real(0, 100, 10),
        "most_days": whole(0, 365, 7),
    },
    "leaderboard": {"names": listed(f"workloads among {', '.join(NAMES)}", lambda name: name in NAMES, '["decode"]')},
    "limits": {
        "day_seconds": whole(10, 3600, 300),
        "total_seconds": whole(10, 86_400, 1800),
        "memory_mib": whole(512, 1 << 20, 4096),
        "processes": whole(8, 4096, 256),
        "disk_mib": whole(16, 1 << 20, 512),
    },
}


def check(file: str, data: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """The tables of a course file, the top one under "". Raises CourseError for the first thing that is wrong."""
    tables: dict[str, dict[str, object]] = {name: {} for name in TABLES}
    for key, value in data.items():
        if key in TABLES:
            if not isinstance(value, dict):
                raise CourseError(f"{file}: {key} is a table: write [{key}] on a line of its own, keys below it")
            tables[key] = value
        elif isinstance(value, dict):
            raise CourseError(f"{file}: [{key}] is no table of a course file: {_choose(key, filter(None, TABLES))}")
        else:
            tables[""][key] = value
    for table, values in tables.items():
        for key, value in values.items():
            _check_key(file, table, key, value)
    return tables


def _check_key(file: str, table: str, key: str, value: object) -> None:
    rules, name = TABLES[table], f"{table}.{key}" if table else key
    if "*" in rules and isinstance(value, dict):
        raise CourseError(f"{file}: {_unquoted(table, key, value)}")
    rule = rules.get(key) or (rules.get("*") if _NUMBER.fullmatch(key) else None)
    if rule is None:
        known = [rule for rule in rules if rule != "*"] + (['"week.day.task"', '"week.day"'] if "*" in rules else [])
        tables = "" if table else f"; the tables are {', '.join(f'[{name}]' for name in TABLES if name)}"
        raise CourseError(f"{file}: {name} is no key of a course file: {_choose(key, known)}{tables}")
    if not rule.holds(value):
        label = f'"{key}"' if rule is rules.get("*") else key
        where = f" in [{table}]" if table else ""
        raise CourseError(f"{file}: {label} = {_shown(value)}{where} is not {rule.limit}: try {label} = {rule.example}")


def _unquoted(table: str, key: str, value: Mapping[str, object]) -> str:
    """TOML takes 1.1.3 without quotes for tables in tables."""
    found: object = value
    while isinstance(found, dict) and found:
        name, found = next(iter(found.items()))
        key = f"{key}.{name}"
    return f'{key} in [{table}] is read as tables: write "{key}" = {_toml(found)}, with quotes'


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else _shown(value)


def _shown(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, date) else repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _choose(key: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(key, names, n=1)
    guess = f"did you mean {near[0]}? " if near else ""
    return f"{guess}choose from {', '.join(names)}"
