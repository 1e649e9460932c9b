"""Where MLX's float32 products go: to a fast library, or on Linux to a slow one."""

from course.doctor.finding import Finding


def probe(full: bool) -> Finding:
    """The route of `course.blas`; without it all works, about 30 times slower."""
    import sys

    from course import blas

    status = blas.activate()
    if status.active:
        return Finding.ok(status.reason)
    if sys.platform != "linux":
        return Finding.ok(status.reason)
    if "switched off" in status.reason:
        return Finding.warn(f"{status.reason}: float32 is about 30 times slower", f"unset {blas.SWITCH}")
    return Finding.warn(f"MLX's own BLAS, about 30 times slower: {status.reason}", "apt install gcc")
