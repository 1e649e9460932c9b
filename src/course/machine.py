"""Facts about this machine, so that a measured number can be judged."""

import importlib.metadata
import os
import platform
from pathlib import Path

from course import blas
from course.memory import GIB, total_memory

PACKAGES = ("mlx", "numpy", "mlx-lm")


def facts() -> dict[str, object]:
    """CPU, cores, memory, versions, BLAS route, and how busy the machine was (load average over a minute)."""
    route = blas.status()
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gib": round(total_memory() / GIB, 1),
        "load_1_min": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
        "openblas_route": "active" if route.active else route.reason,
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
