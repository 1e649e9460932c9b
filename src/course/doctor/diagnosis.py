"""All findings together, and what they mean: which days of which week can be done on this machine."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from course.doctor.checks import CHECKS, SECONDS, Check
from course.doctor.child import ask
from course.doctor.finding import OK, Finding
from course.doctor.install import install
from course.errors import CourseError
from course.paths import CURRICULUM

_AT_ONCE = 4


@dataclass(frozen=True)
class Checked:
    """One line of the report. stops: the words of `Finding.stops`; days: those that it stops, as "2.4"."""

    name: str
    title: str
    state: str
    found: str
    fix: str
    fixes: dict[str, str]
    stops: tuple[str, ...]
    days: tuple[str, ...] = ()


@dataclass(frozen=True)
class WeekVerdict:
    """Whether a week of `days` days can be done. stopped: those that cannot, as "2.4"; by: checks that stop them."""

    week: int
    title: str
    days: int
    possible: bool
    stopped: tuple[str, ...]
    by: tuple[str, ...]


@dataclass(frozen=True)
class Diagnosis:
    """What `doctor` says; `problem` is why the registry could not be read, "" where it could."""

    checks: tuple[Checked, ...]
    weeks: tuple[WeekVerdict, ...]
    problem: str = ""

    @property
    def possible(self) -> bool:
        """Whether all that was asked for can be done."""
        return not self.problem and all(week.possible for week in self.weeks)

    def plain(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self) | {"possible": self.possible}


def examine(week: int | None = None, full: bool = False, skip: frozenset[str] = frozenset()) -> Diagnosis:
    """Run all checks, several at a time. `skip`: names of checks that are left out.

    Raises CourseError for a week that does not exist.
    """
    checks = [check for check in CHECKS if check.name not in skip]
    with ThreadPoolExecutor(min(_AT_ONCE, os.cpu_count() or 1)) as pool:
        needs = pool.submit(_needs)
        findings = list(pool.map(lambda check: _finding(check, full), checks))
        weeks, problem = needs.result()
    if week is not None and not problem:
        weeks = [one for one in weeks if one["week"] == week] or _no_week(week, weeks)
    days = {f"{one['week']}.{day['day']}": set(day["needs"]) for one in weeks for day in one["days"]}
    checked = tuple(_checked(check, found, days) for check, found in zip(checks, findings, strict=True))
    return Diagnosis(checked, tuple(_verdict(one, checked) for one in weeks), problem)


def _needs() -> tuple[list[dict[str, object]], str]:
    """Weeks as `course.doctor.needs` tells them, and why there are none."""
    if not CURRICULUM.is_dir():
        return [], f"{CURRICULUM} is missing: run this in a complete checkout of the course"
    try:
        return list(ask("needs", 3 * SECONDS)["weeks"]), ""
    except (CourseError, KeyError, TypeError) as error:
        return [], f"the registry in curriculum/ cannot be read ({error}), so no week can be judged"


def _finding(check: Check, full: bool) -> Finding:
    try:
        return Finding.again(ask(check.name, check.full_seconds if full else check.seconds, full))
    except CourseError as error:
        said = str(error)
    except (KeyError, TypeError, ValueError) as error:
        said = f"the check's answer cannot be read ({error})"
    fix = install() if "No module named" in said else ""
    return Finding.fail(said, fix, stops=check.blocks) if check.blocks else Finding.warn(said, fix)


def _checked(check: Check, found: Finding, days: dict[str, set[str]]) -> Checked:
    stopped = tuple(day for day, needs in days.items() if needs.intersection(found.stops))
    fix = "" if found.state == OK else found.fix
    return Checked(check.name, check.title, found.state, found.found, fix, found.fixes, found.stops, stopped)


def _verdict(week: dict[str, object], checks: tuple[Checked, ...]) -> WeekVerdict:
    own = [f"{week['week']}.{day['day']}" for day in week["days"]]
    stopped = tuple(day for day in own if any(day in check.days for check in checks))
    by = tuple(check.name for check in checks if set(own).intersection(check.days))
    return WeekVerdict(week["week"], week["title"], len(own), not stopped, stopped, by)


def _no_week(number: int, weeks: list[dict[str, object]]) -> list[dict[str, object]]:
    numbers = ", ".join(str(week["week"]) for week in weeks)
    raise CourseError(f"week {number} does not exist: choose from {numbers}")


def describe_terminal() -> str:
    """What the check of the terminal gets to know: it runs without one."""
    if not sys.stdout.isatty():
        return ""
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except OSError:
        return ""
    return f"{columns} {sys.stdout.encoding}"
