"""The starter generator: the learner's package, made from the reference and the registry."""

from course.starter.generate import generate, read_package, render

__all__ = ["generate", "read_package", "render"]
