"""The graded tests: each day has its file, and Git would say if one differs."""

import subprocess

from course.curriculum import load
from course.doctor.finding import Finding
from course.paths import ROOT, TESTS

_SECONDS = 10


def probe(full: bool) -> Finding:
    """A day without its file cannot be graded; a changed one grades something else."""
    days = load().days
    missing = [day for day in days if not day.tests.is_file()]
    if missing:
        names = ", ".join(str(day.tests.relative_to(ROOT)) for day in missing[:3])
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        stops = tuple(f"day:{day.week}.{day.day}" for day in missing)
        return Finding.fail(f"missing: {names}{more}", f"git checkout {TESTS.name}", stops=stops)
    if changed := _changed():
        return Finding.warn(f"changed by you: {', '.join(changed[:3])}", f"git checkout {TESTS.name}")
    return Finding.ok(f"{len(days)} files, one for each day")


def _changed() -> list[str]:
    """Test files that differ from the last commit, where Git can tell."""
    command = ["git", "-C", str(ROOT), "diff", "--name-only", "HEAD", "--", f"{TESTS.name}/week_*/test_day_*.py"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.split()
