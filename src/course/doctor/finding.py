"""What one check found, as plain values: it crosses a process boundary as JSON. Knows no check and no week."""

import sys
from dataclasses import asdict, dataclass, field

OK, WARN, FAIL = "ok", "warn", "fail"
EVERYTHING = "everything"
LIBRARY, EMULATOR = "library", "emulator"  # as `Curriculum.built_for` says it
COMPILED = (LIBRARY, EMULATOR)


@dataclass(frozen=True)
class Finding:
    """`state` "ok", "warn" (works, but read this) or "fail"; what was found; fixes by platform; what it stops.

    fixes: commands or advice by "debian", "macos" or "any". stops: EVERYTHING, "library", "emulator", "module:NAME",
    "file:NAME" or "day:W.D", which days are compared with; empty for what stops no graded day.
    """

    state: str
    found: str
    fixes: dict[str, str] = field(default_factory=dict)
    stops: tuple[str, ...] = ()

    @classmethod
    def ok(cls, found: str) -> "Finding":
        """All is well."""
        return cls(OK, found)

    @classmethod
    def warn(cls, found: str, any: str = "", **fixes: str) -> "Finding":
        """It works, but not as well as it could."""
        return cls(WARN, found, _given(any, fixes))

    @classmethod
    def fail(cls, found: str, any: str = "", stops: tuple[str, ...] = (EVERYTHING,), **fixes: str) -> "Finding":
        """Something cannot be done."""
        return cls(FAIL, found, _given(any, fixes), tuple(stops))

    @property
    def fix(self) -> str:
        """What to do about it on this machine; "" for nothing."""
        here = "macos" if sys.platform == "darwin" else "debian"
        return self.fixes.get("any") or self.fixes.get(here) or next(iter(self.fixes.values()), "")

    def plain(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self) | {"stops": list(self.stops)}

    @classmethod
    def again(cls, plain: dict[str, object]) -> "Finding":
        """From what `plain` gave. Raises TypeError, KeyError or ValueError for anything else."""
        if plain["state"] not in (OK, WARN, FAIL):
            raise ValueError(f"no state {plain['state']!r}")
        return cls(str(plain["state"]), str(plain["found"]), dict(plain["fixes"]), tuple(plain["stops"]))


def _given(any: str, fixes: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in {"any": any, **fixes}.items() if text}
