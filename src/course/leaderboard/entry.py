"""What a leaderboard keeps of a submission."""

import msgspec

DESCENDING, ASCENDING = "desc", "asc"


class Entry(msgspec.Struct, frozen=True):
    """One number. `order` as Gradescope has it: "desc" puts the largest first. `hardware`: only equals compare."""

    name: str
    value: float
    order: str
    unit: str
    hardware: str


class Skipped(msgspec.Struct, frozen=True):
    """A workload without an entry, and why, in one line."""

    name: str
    reason: str


class Measured(msgspec.Struct, frozen=True):
    """All that was asked for."""

    entries: tuple[Entry, ...]
    skipped: tuple[Skipped, ...]
