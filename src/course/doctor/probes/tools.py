"""CMake and Ninja, which the course's packages bring, and ccache, which is only nice to have."""

import re
import shutil
import subprocess

from course.doctor.finding import COMPILED, Finding
from course.doctor.install import install
from course.errors import CourseError
from course.toolchain import find_program

_SECONDS = 15


def probe(full: bool) -> Finding:
    """Both are there and run."""
    found = []
    for name in ("cmake", "ninja"):
        try:
            path = find_program(name)
            done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=True)
        except CourseError as error:
            return Finding.fail(str(error).partition(":")[0], install(), stops=COMPILED)
        except (OSError, subprocess.SubprocessError) as error:
            return Finding.fail(f"{name} does not run ({error})", install(), stops=COMPILED)
        version = re.search(r"\d+(\.\d+)+", done.stdout)
        found.append(f"{name} {version[0] if version else '?'}")
    ccache = "with ccache" if shutil.which("ccache") else "no ccache (it saves time after a change back)"
    return Finding.ok(f"{', '.join(found)}, {ccache}")
