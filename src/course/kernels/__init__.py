"""What packages and graded tests use of the course's kernel tools."""

from course.emulator.errors import KernelError
from course.kernels.checked import checked
from course.kernels.extension import extension
from course.kernels.metal import metal_kernel
from course.kernels.proof import dispatches, faulty
from course.kernels.symbols import OPERATORS, forbidden_symbols

__all__ = [
    "OPERATORS",
    "KernelError",
    "checked",
    "dispatches",
    "extension",
    "faulty",
    "forbidden_symbols",
    "metal_kernel",
]
