"""The checks, in the order in which they are shown: each is a module of `course.doctor.probes`."""

from dataclasses import dataclass

from course.doctor.finding import COMPILED, EVERYTHING

SECONDS = 20.0
"""s: the time limit of a check on a busy machine; an ordinary one takes a tenth of a second."""


@dataclass(frozen=True)
class Check:
    """`name`: its stable name and its module's; `blocks`: what cannot be done where the check itself dies."""

    name: str
    title: str
    blocks: tuple[str, ...] = ()
    seconds: float = SECONDS
    full_seconds: float = SECONDS


CHECKS = (
    Check("system", "system"),
    Check("python", "Python", (EVERYTHING,)),
    Check("packages", "packages", (EVERYTHING,), seconds=60.0, full_seconds=60.0),
    Check("mlx", "MLX", (EVERYTHING,), seconds=60.0, full_seconds=60.0),
    Check("pair", "MLX and nanobind", COMPILED),
    Check("compiler", "C++ compiler", COMPILED, seconds=60.0, full_seconds=60.0),
    Check("tools", "CMake and Ninja", COMPILED),
    Check("extension", "C++ extension", COMPILED, full_seconds=300.0),
    Check("metal", "Metal kernels", ("emulator",), seconds=60.0, full_seconds=600.0),
    Check("blas", "float32 products", seconds=60.0, full_seconds=60.0),
    Check("memory", "memory"),
    Check("disk", "disk"),
    Check("cores", "cores"),
    Check("limits", "limits"),
    Check("models", "models"),
    Check("git", "git"),
    Check("boundary", "grader's boundary", seconds=60.0, full_seconds=60.0),
    Check("starter", "your files", (EVERYTHING,)),
    Check("tests", "graded tests", (EVERYTHING,)),
    Check("folders", "writable folders"),
    Check("clock", "clock"),
    Check("terminal", "terminal"),
)
