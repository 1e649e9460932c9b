"""The test file of a build: its one case compiles the C++ of a package, tries the library, and returns it."""

import os
import tempfile
from pathlib import Path

from course.build import ensure_built
from course.case import case
from course.errors import CourseError
from course.paths import EXTENSION, cache_folder, extension_folder


@case(task=1)
class Compiling:
    """The C++ of a package builds."""

    def inputs(rng): ...

    def observe(solution, compiled):
        """compiled: the grader's folder of what was compiled before, which can only be read here."""
        os.environ |= {"CCACHE_READONLY": "1", "CCACHE_NOSTATS": "1", "CCACHE_TEMPDIR": tempfile.gettempdir()}
        if compiled is not None:
            os.environ["CCACHE_DIR"] = compiled
        with tempfile.TemporaryDirectory() as folder:
            try:
                trees = cache_folder() / "build"
                library = ensure_built(extension_folder(solution.folder), Path(folder), EXTENSION, trees)
            except CourseError as error:
                return {"problem": str(error)}
            return {"library": library.read_bytes()}

    def verify(inputs, values): ...
