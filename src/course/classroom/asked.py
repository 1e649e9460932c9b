"""What the command line of `class` asks for, checked before anything runs."""

import argparse
import os

from course.boundary import choose
from course.classroom.clock import moment, zone
from course.classroom.desk import Asked
from course.classroom.late import FREE
from course.classroom.lines import Lateline
from course.classroom.worth import decides, scoring
from course.errors import CourseError
from course.grading.course_file import Course
from course.grading.seeds import load_seeds

_JOB_MEMORY = 1.5 * 2**30
_SLACK = 720
"""s: that a grader may need beyond the course's own limit, to build kernels and to measure for the leaderboard."""


def asked(args: argparse.Namespace, course: Course) -> Asked:
    """Raises CourseError in one line for what cannot be meant."""
    if args.jobs is not None and args.jobs < 1:
        raise CourseError(f"--jobs {args.jobs} grades nothing: give 1 or more")
    if args.limit is not None and args.limit <= 0:
        raise CourseError(f"--limit {args.limit:g} leaves no time: give seconds, more than 0")
    if args.output.resolve().is_relative_to(args.folder.resolve()):
        raise CourseError(f"--output {args.output} lies among the submissions: name a folder outside of {args.folder}")
    _check_days(args, course)
    mode = choose(args.boundary)
    return Asked(
        folder=args.folder,
        output=args.output,
        late=_late(args, course),
        roster=args.roster,
        times=args.times,
        jobs=args.jobs or _usual_jobs(),
        limit=args.limit or float(course.limits.total_seconds + _SLACK),
        again=args.again,
        options=("--boundary", mode, *_options(args)),
        depends=(decides(course), *map(str, _seeds(args, course))),
        scoring=scoring(course),
        mode=mode,
    )


def _check_days(args: argparse.Namespace, course: Course) -> None:
    if args.day is not None and args.week is None:
        raise CourseError(f"--day {args.day} needs --week N")
    course.chosen(args.week, args.day)


def _late(args: argparse.Namespace, course: Course) -> Lateline:
    where = zone(args.zone) if args.zone else None
    deadline = moment(args.deadline, where, "--deadline") if args.deadline else None
    own = course.late.deadline if course.late else None
    return Lateline(deadline or own, course.late or FREE, where)


def _options(args: argparse.Namespace) -> list[str]:
    """Those that every grader gets."""
    options: list[str] = []
    for name, value in (("--week", args.week), ("--day", args.day)):
        options += [name, str(value)] if value is not None else []
    for name, path in (("--course", args.course), ("--seeds", args.seeds)):
        options += [name, str(path.resolve())] if path else []
    return options


def _seeds(args: argparse.Namespace, course: Course) -> tuple[int, ...]:
    """Loading takes a secret out of the environment; the graders need it there."""
    before = dict(os.environ)
    try:
        return load_seeds(course, args.seeds)
    finally:
        os.environ.update(before)


def _usual_jobs() -> int:
    """One for each core that this process may use, as far as memory goes."""
    import psutil

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, int(psutil.virtual_memory().available / _JOB_MEMORY)))
