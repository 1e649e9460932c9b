"""The gallery on a terminal: its list, one scenario, or all with one number each. Narrow enough for 80 columns."""

import textwrap
from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table

from course.sim.gallery.scenario import Outcome, Scenario

WIDTH = 80
Played = tuple[Scenario, Outcome, Outcome]
"""A scenario, and what happened with its broken and with its repaired policy."""


def listing(scenarios: Iterable[tuple[str, Scenario]]) -> Table:
    """What there is: names, and the complaints in few words."""
    table = Table("name", "complaint", title="Failures of real systems")
    for name, scenario in scenarios:
        table.add_row(name, scenario.title)
    return table


def one(scenario: Scenario, broken: Outcome, repaired: Outcome) -> Group:
    """All of one: who complained, what the policies do, and all numbers."""
    about: list[RenderableType] = [scenario.title, "", textwrap.fill(scenario.complaint, WIDTH), ""]
    policies = (("broken", scenario.broken), ("repaired", scenario.repaired))
    about += [textwrap.fill(f"{name:8}  {text}", WIDTH, subsequent_indent=" " * 10) for name, text in policies]
    table = _table("")
    for name, value in broken.numbers.items():
        table.add_row(words(name), number(value), number(repaired.numbers[name]))
    return Group(*about, "", table)


def overview(played: dict[str, Played]) -> Table:
    """Of each the number that falls most with the repair."""
    table = _table("scenario", "number")
    for name, (_, broken, repaired) in played.items():
        pairs = {key: (value, repaired.numbers[key]) for key, value in broken.numbers.items()}
        measure = max(pairs, key=lambda key: (1 + pairs[key][0]) / (1 + pairs[key][1]))
        table.add_row(name, words(measure), *map(number, pairs[measure]))
    return table


def words(measure: str) -> str:
    """The name of a number."""
    return measure.replace("_", " ")


def number(value: float) -> str:
    """Whole numbers as they are, others with three figures or so."""
    if value == int(value):
        return f"{int(value):,}"
    places = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:,.{places}f}"


def _table(*columns: str) -> Table:
    table = Table(*columns)
    for name in ("broken", "repaired"):
        table.add_column(name, justify="right")
    return table
