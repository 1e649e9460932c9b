"""A grade in the making: what is known so far, from which a whole `Grade` can be made at any moment.

Before anything has run it is zero points with a reason, so whatever happens later, there is a result."""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from course.curriculum import Day
from course.grading.course_file import Course, HiddenTable
from course.grading.grade import Grade, LeaderboardEntry, Protection
from course.grading.runner import DayRun
from course.grading.score import score_day
from course.grading.text import clean, one_line
from course.grading.version import course_version

_UNFINISHED = "grading has not come to its end: it still runs, or was killed"
_MOST_PROBLEM = 2000
_MOST_IGNORED = 100


@dataclass
class Draft:
    """Mutable; `hidden` says how much hidden variants are worth, None that there are none."""

    course: Course
    days: Sequence[Day]
    student: str
    submission: str
    hidden: HiddenTable | None = None
    mode: str = ""
    protections: tuple[Protection, ...] = ()
    leaderboard: tuple[LeaderboardEntry, ...] = ()
    revision: str = ""
    problem: str = _UNFINISHED
    notes: list[str] = field(default_factory=list)
    ignored: tuple[str, ...] = ()
    public: dict[Day, DayRun] = field(default_factory=dict)
    variants: dict[Day, list[DayRun]] = field(default_factory=lambda: defaultdict(list))
    started: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    _clock: float = field(default_factory=time.monotonic)

    def finish(self, problem: str = "") -> None:
        """Nothing more will come; `problem` says why that is not all, else the runs do."""
        self.problem = problem or "; ".join(dict.fromkeys(self._problems()))

    def _problems(self) -> list[str]:
        told = [f"{day.label}: {run.problem}" for day, run in self.public.items() if run.problem]
        told += [
            f"{day.label}, hidden variants: {run.problem}"
            for day, runs in self.variants.items()
            for run in runs
            if run.problem
        ]
        return told + [f"{day.label}: it did not run" for day in self.days if day not in self.public]

    def grade(self) -> Grade:
        """All that is known now."""
        tasks = (
            task
            for day in self.days
            for task in score_day(self.course, day, self.public.get(day), self.variants[day], self.hidden)
        )
        return Grade(
            title=one_line(self.course.title),
            student=one_line(self.student),
            submission=one_line(self.submission),
            revision=self.revision,
            course=course_version(),
            started=self.started,
            seconds=round(time.monotonic() - self._clock, 3),
            mode=self.mode,
            protections=self.protections,
            notes=tuple(clean(note, 500) for note in self.notes),
            ignored=tuple(one_line(name) for name in self.ignored[:_MOST_IGNORED]),
            problem=clean(self.problem, _MOST_PROBLEM),
            complete=not self.problem,
            tasks=tuple(tasks),
            leaderboard=self.leaderboard,
        )
