"""What a registry and a view must say after any calls, written down afresh: nothing is removed, all is noted."""

import random
from collections.abc import Mapping

Step = list[object]
Told = list[list[object]]
"""Changes: [key, entry], or [key, None]."""


def below(prefix: str, key: str) -> bool:
    """Whether the parts of a prefix are the first parts of a key."""
    parts = prefix.split("/") if prefix else []
    return key.split("/")[: len(parts)] == parts


class Ledger:
    """The registry's rules: of each lease when it ends, and of each key who set it last.

    mistake: the name of one that makes it a wrong one.
    """

    def __init__(self, ttl: int, mistake: str = ""):
        self.ttl, self.mistake = ttl, mistake
        self.ends: dict[int, int] = {}
        self.put_by: dict[str, tuple[int, int]] = {}

    def alive(self, lease: int, now: int) -> bool:
        """Whether a lease lives."""
        return now < self.ends.get(lease, -1) + (self.mistake == "lives on at its deadline")

    def apply(self, step: Step, now: int, lease: int) -> str | None:
        """Note [kind, key, value] of a lease. Returns the error that it must raise, if any."""
        kind, key, value = step
        if kind == "grant":
            self.ends[lease] = now + self.ttl
        elif kind == "revoke" and self.alive(lease, now):
            self.ends[lease] = now
            if self.mistake == "a revoked lease keeps its keys":
                self.ends[-1] = 10**9
                self.put_by |= {k: (-1, v) for k, (owner, v) in self.put_by.items() if owner == lease}
        elif kind in ("renew", "put") and not self.alive(lease, now):
            if kind == "renew" and self.mistake == "a renewal that comes too late is accepted" and lease in self.ends:
                self.ends[lease] = now + self.ttl
                return None
            return "LeaseError"
        elif kind == "renew":
            start = self.ends[lease] if self.mistake == "a renewal adds ttl to what is left" else now
            self.ends[lease] = start + self.ttl
        elif kind == "put":
            if self.mistake == "the first lease that set a key keeps it" and key in self.put_by:
                lease = self.put_by[key][0] if self.alive(self.put_by[key][0], now) else lease
            self.put_by[key] = (lease, value)
        return None

    def keys(self, prefix: str, now: int) -> dict[str, int]:
        """What there is below a prefix."""
        return {k: v for k, (lease, v) in sorted(self.put_by.items()) if below(prefix, k) and self.alive(lease, now)}


LEDGER_MISTAKES: dict[str, str] = {
    "a lease ends at its deadline, not after it": "lives on at its deadline",
    "a renewal adds ttl to what is left: it counts from now": "a renewal adds ttl to what is left",
    "a renewal that comes too late is accepted": "a renewal that comes too late is accepted",
    "a revoked lease keeps its keys": "a revoked lease keeps its keys",
    "a key ends with the lease that set it first, not with the last": "the first lease that set a key keeps it",
}
"""What to tell a learner, and the name of the mistake in the ledger."""


def script_of(rng: random.Random, steps: int, ttl: int) -> list[Step]:
    """Steps [time, kind, lease, key, value]; a lease is given by its place among those granted. Many at a deadline."""
    script, ends, now = [[0, "grant", 0, "", 0]], [ttl], 0
    for _ in range(steps):
        now = rng.choice([now, now + rng.randint(0, ttl // 2), max(now, rng.choice(ends) + rng.choice([-1, 0, 0]))])
        lease, kind = rng.randrange(len(ends)), rng.choice(["grant", "put", "put", "put", "renew", "renew", "revoke"])
        key = f"{rng.choice(['a', 'ab', 'a/b', 'c'])}/{rng.randrange(3)}"
        if kind == "grant":
            lease = len(ends)
            ends.append(now + ttl)
        elif kind == "renew":
            ends[lease] = now + ttl
        script.append([now, kind, lease, key, rng.randrange(100)])
    return script


def played(script: list[Step], ttl: int, mistake: str = "") -> Told:
    """What a script gives by the ledger: of each step its result, and what there is below "a" then."""
    ledger, results = Ledger(ttl, mistake), []
    for now, kind, lease, key, value in script:
        results.append([ledger.apply([kind, key, value], now, lease), ledger.keys("a", now)])
    return results


class Belief:
    """What a view should believe, and say, whose entries are twice the numbers that are put. Texts cannot be parsed."""

    def __init__(self) -> None:
        self.entries: dict[str, int] = {}

    def apply(self, key: str, value: object) -> Told:
        """Take a change; returns what it changes."""
        if value is None:
            return [[key, None]] if self.entries.pop(key, None) is not None else []
        if not isinstance(value, int) or self.entries.get(key) == 2 * value:
            return []
        self.entries[key] = 2 * value
        return [[key, 2 * value]]

    def resync(self, snapshot: Mapping[str, object]) -> Told:
        """Take all that there is; returns the difference."""
        gone = [[key, None] for key in self.entries if key not in snapshot]
        self.entries = {key: value for key, value in self.entries.items() if key in snapshot}
        return gone + [change for key, value in snapshot.items() for change in self.apply(key, value)]
