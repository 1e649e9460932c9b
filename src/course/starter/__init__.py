"""The starter generator: the learner's package, made from the reference and the registry."""

from course.starter.generate import generate, package_files, read_package, render, render_file, write
from course.starter.symbols import Done, nothing

__all__ = ["Done", "generate", "nothing", "package_files", "read_package", "render", "render_file", "write"]
