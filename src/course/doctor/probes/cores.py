"""How many cores there are, and how busy they are: time limits of tests are for a quiet machine."""

import os

from course.doctor.finding import Finding


def probe(full: bool) -> Finding:
    """Cores that this process may use, and the load of the last minute."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    load = os.getloadavg()[0]
    found = f"{usable} usable, load {load:.1f}"
    if load > 2 * usable:
        return Finding.warn(f"{found}: busy, so tests may run out of time", "close other programs, then test again")
    if usable == 1:
        return Finding.warn(f"{found}: builds and tests take about twice as long")
    return Finding.ok(found)
