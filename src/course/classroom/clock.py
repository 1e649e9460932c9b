"""Moments with a time zone, as people write them. A time without a zone is refused unless a zone is given."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from course.errors import CourseError

_FORM = "write it as 2026-10-05T23:59+02:00"


def zone(name: str) -> ZoneInfo:
    """The time zone called `Europe/Berlin`. Raises CourseError for a name that this machine does not know."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CourseError(
            f"--zone {name} is not known here: use a name like Europe/Berlin, or write times with their offset (+02:00)"
        ) from None


def moment(text: str, where: ZoneInfo | None, what: str) -> datetime:
    """`text` as a moment; `where` completes a time without an offset. `what` names it in the error."""
    try:
        when = datetime.fromisoformat(text.strip().replace(" UTC", "+00:00"))
    except ValueError:
        raise CourseError(f"{what} {text!r} is not a time: {_FORM}") from None
    if when.tzinfo is None and where is None:
        raise CourseError(f"{what} {text!r} has no time zone: {_FORM}, or add --zone Europe/Berlin")
    return when if when.tzinfo else when.replace(tzinfo=where)


def told(when: datetime, where: ZoneInfo | None) -> str:
    """As it is shown: to the minute, with its offset, in the zone `where` or else UTC."""
    return when.astimezone(where or UTC).isoformat(sep=" ", timespec="minutes")
