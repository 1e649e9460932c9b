"""The clock: builds are told stale by time, and deadlines are counted with it."""

import time
from datetime import UTC, datetime

from course.doctor.finding import Finding
from course.paths import ROOT

_SLACK = 86_400.0  # s: time zones of file systems, and clocks a little off


def probe(full: bool) -> Finding:
    """Not before the files of this checkout were written."""
    now, written = time.time(), (ROOT / "pyproject.toml").stat().st_mtime
    found = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M UTC")
    if now < written - _SLACK:
        fixes = {"debian": "timedatectl set-ntp true", "macos": "sudo sntp -sS time.apple.com"}
        return Finding.warn(f"{found} is before the files of this checkout were written", **fixes)
    return Finding.ok(found)
