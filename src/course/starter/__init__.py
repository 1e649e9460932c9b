"""The starter generator: the learner's package, made from the reference and the registry."""

from course.starter.generate import generate, read_package, render, render_file
from course.starter.symbols import Done, nothing

__all__ = ["Done", "generate", "nothing", "read_package", "render", "render_file"]
