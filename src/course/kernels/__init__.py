"""What packages and graded tests use of the course's kernel tools."""

from course.kernels.extension import extension
from course.kernels.proof import dispatches, faulty
from course.kernels.symbols import forbidden_symbols

__all__ = ["dispatches", "extension", "faulty", "forbidden_symbols"]
