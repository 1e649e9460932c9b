"""Which version of the course graded: the package's version, and the commit where the course is a checkout."""

from functools import cache
from importlib import metadata
from pathlib import Path

from course.grading.source import revision
from course.paths import ROOT


@cache
def course_version(root: Path = ROOT) -> str:
    """ "0.1.0", or "0.1.0 (503bc83)"."""
    try:
        version = metadata.version("tiny-llm")
    except metadata.PackageNotFoundError:
        version = "unknown version"
    commit = revision(root)
    return f"{version} ({commit[:10]})" if commit else version
