"""Whether MLX loads and computes, and on what."""

from course.doctor.finding import Finding
from course.doctor.install import install


def probe(full: bool) -> Finding:
    """One sum, and the default device."""
    import course.route  # noqa: F401 - before anything imports mlx.core

    try:
        import mlx.core as mx
    except ImportError as error:
        reason = str(error).splitlines()[0]
        return Finding.fail(f"MLX does not load: {reason}", _fix(reason))
    total = mx.sum(mx.arange(5) * 2).item()
    if total != 20:
        return Finding.fail(f"MLX computes 0 + 2 + 4 + 6 + 8 = {total}", install(again=True))
    device = "the GPU (Metal)" if mx.metal.is_available() else "the CPU"
    return Finding.ok(f"{mx.__version__}, computes on {device}")


def _fix(reason: str) -> str:
    if "No module named" in reason:
        return install()
    if "GLIBC" in reason or "libstdc++" in reason or "CXXABI" in reason:
        return "this system is older than MLX's wheel: use Debian 12, Ubuntu 24.04 or later"
    return install(again=True)
