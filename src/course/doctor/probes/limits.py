"""Limits of this login: open files and processes."""

import resource

from course.doctor.finding import Finding

FILES, PROCESSES = 256, 128
"""Fewer are too few: a load test holds a socket for each user, a test run starts processes."""


def probe(full: bool) -> Finding:
    """The soft limits that a shell gives."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    processes = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    found = f"{_told(files)} open files, {_told(processes)} processes"
    if 0 <= files < FILES:
        return Finding.warn(f"{found}: many clients at once need more files", f"ulimit -n {4 * FILES}")
    if 0 <= processes < PROCESSES:
        return Finding.warn(f"{found}: tests start processes", f"ulimit -u {4 * PROCESSES}")
    return Finding.ok(found)


def _told(limit: int) -> str:
    return "unlimited" if limit == resource.RLIM_INFINITY else f"{limit:,}"
