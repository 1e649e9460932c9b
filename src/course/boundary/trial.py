"""The test file of a trial run: one case, which tells what code inside the boundary can do."""

import os
import subprocess
import sys

from course.case import case


@case(task=1, timeout=20.0)
class Trial:
    """Code runs, and can start Python."""

    def inputs(rng): ...

    def observe(solution, place):
        started = subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True, timeout=15)
        return {"user": os.geteuid(), "writes": os.access(place, os.W_OK), "started": started.stdout.strip() == "42"}

    def verify(inputs, values): ...
