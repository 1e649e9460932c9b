"""How much memory there is: compiling needs most."""

import resource

from course.doctor.finding import COMPILED, EVERYTHING, Finding
from course.memory import GIB, available_memory, total_memory

LEAST, ENOUGH = 1.0, 3.5
"""GiB: below the first nothing runs, below the second a compiler and a test may not run at once."""


def probe(full: bool) -> Finding:
    """Memory of the machine or its container, and limits set on processes."""
    total, free = total_memory() / GIB, available_memory() / GIB
    found = f"{total:.1f} GiB, {free:.1f} GiB free"
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < 8 * GIB:
        return Finding.warn(f"{found}, but a process may address {limit / GIB:.1f} GiB only", "ulimit -v unlimited")
    if total < LEAST:
        return Finding.fail(f"{found}: less than {LEAST:g} GiB", "use a larger machine or container", (EVERYTHING,))
    if free < LEAST:
        return Finding.fail(f"{found}: compiling needs {LEAST:g} GiB", "close other programs", COMPILED)
    if total < ENOUGH:
        return Finding.warn(f"{found}: compiling will be slow", "close other programs while kernels are built")
    return Finding.ok(found)
