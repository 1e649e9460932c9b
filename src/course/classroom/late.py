"""Late days: what a submission loses that came after its deadline. Plain arithmetic on moments with time zones."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from course.grading.course_file import LateTable

_DAY = timedelta(days=1)
FREE = LateTable(grace_minutes=0, percent_per_day=0.0, most_days=10**6)
"""For a deadline without a rule: late days are told, and cost nothing."""


@dataclass(frozen=True)
class Lateness:
    """`days` begun after the deadline, `charged` of them, and the share of the points that is `kept`."""

    days: int = 0
    charged: int = 0
    kept: float = 1.0


def lateness(when: datetime, deadline: datetime, rule: LateTable) -> Lateness:
    """Nothing within the grace. After it each day begun since the deadline counts whole.

    The first `free_days` cost nothing, each further one `percent_per_day` of the points earned; after `most_days`
    nothing is left.
    """
    after = when.astimezone(UTC) - deadline.astimezone(UTC)  # of one zone, Python would count the clock's hours
    if after <= timedelta(minutes=rule.grace_minutes):
        return Lateness()
    days = math.ceil(after / _DAY)
    charged = max(0, days - rule.free_days)
    left = max(0.0, 1.0 - rule.percent_per_day * charged / 100) if days <= rule.most_days else 0.0
    return Lateness(days, charged, left)
