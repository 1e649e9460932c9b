"""Which Python this is: new enough, 64 bits, in an environment of its own."""

import platform
import re
import sys
import tomllib

from course.doctor.finding import Finding
from course.paths import ROOT


def probe(full: bool) -> Finding:
    """Version, width and environment."""
    version = platform.python_version()
    found = f"{version} in {sys.prefix}"
    wanted = _least()
    if wanted and sys.version_info < wanted:
        least = ".".join(map(str, wanted))
        fixes = {"debian": f"apt install python{least} python{least}-venv", "macos": f"brew install python@{least}"}
        return Finding.fail(f"{found} is older than {least}", **fixes)
    if sys.maxsize <= 1 << 32:
        return Finding.fail(f"{found} has 32 bits: MLX needs 64", "install a 64-bit Python")
    if sys.implementation.name != "cpython":
        return Finding.fail(f"{found} is {sys.implementation.name}: MLX needs CPython", "install CPython")
    if sys.prefix == sys.base_prefix:
        return Finding.warn(f"{found} is no environment of its own: other projects may change it", "./run doctor")
    return Finding.ok(f"{found}, 64 bits")


def _least() -> tuple[int, ...]:
    """The version that pyproject.toml asks for; () where it does not say."""
    try:
        text = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    except (OSError, ValueError, KeyError):
        return ()
    found = re.search(r">=\s*([\d.]+)", str(text))
    return tuple(map(int, found[1].split("."))) if found else ()
