"""The report for people: a line for each check, the fixes, and a verdict per week. Colours only where rich is there."""

import textwrap

from course.doctor.diagnosis import Checked, Diagnosis, WeekVerdict

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red", "ready": "green", "stop": "red"}
_STATE, _TITLE = 6, 19
_LEAST = 40

Line = tuple[str, str, str]
"""A word with a colour of its own, the rest, and what following lines are indented with."""


def lines(diagnosis: Diagnosis) -> list[Line]:
    """All of it, not yet broken into lines of a width."""
    found = [line for check in diagnosis.checks for line in _check(check)]
    found.append(("", "", ""))
    if diagnosis.problem:
        return [*found, ("stop", diagnosis.problem, " " * _STATE)]
    titles = {check.name: check.title for check in diagnosis.checks}
    return found + [_week(week, titles) for week in diagnosis.weeks]


def _check(check: Checked) -> list[Line]:
    rest = " " * (_STATE + _TITLE)
    found = [(check.state, f"{check.title:{_TITLE}}{check.found}", rest)]
    if check.fix:
        found.append(("", f"{'fix':>{_TITLE - 2}}  {check.fix}", rest))
    return found


def _week(week: WeekVerdict, titles: dict[str, str]) -> Line:
    if week.possible:
        return "ready", f"Week {week.week}: {week.title}", " " * _STATE
    days = ", ".join(day.partition(".")[2] for day in week.stopped)
    which = "no day" if len(week.stopped) == week.days else f"not day {days}"
    by = ", ".join(titles[name] for name in week.by)
    return "stop", f"Week {week.week}: {week.title}: {which}, because of: {by}", " " * _STATE


def wrapped(line: Line, width: int) -> tuple[str, str]:
    """The word, and the rest broken to the width; commands and paths are never broken."""
    word, text, indent = line
    body = textwrap.wrap(
        text,
        max(width, _LEAST),
        initial_indent=" " * _STATE,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
        replace_whitespace=False,
    )
    return word, "\n".join(body)[_STATE:] if body else ""


def show(diagnosis: Diagnosis) -> None:
    """Print it: with colours on a terminal, plain where rich is missing."""
    try:
        from rich.text import Text

        from course.console import console
    except ImportError:
        for line in lines(diagnosis):
            word, text = wrapped(line, 80)
            print(f"{word:{_STATE}}{text}".rstrip())
        return
    out = console()
    for line in lines(diagnosis):
        word, text = wrapped(line, out.width)
        shown = Text.assemble((f"{word:{_STATE}}", _COLOURS.get(word, "")), text)
        shown.rstrip()
        out.print(shown, soft_wrap=True)
