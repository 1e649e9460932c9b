"""Whether MLX and nanobind fit: a C++ library built with another nanobind refuses every array."""

import tomllib

from course.doctor.finding import COMPILED, Finding
from course.doctor.install import install
from course.errors import CourseError
from course.paths import ROOT
from course.toolchain import PAIRS, check_pair, version_of


def probe(full: bool) -> Finding:
    """Installed, as pinned, and known to fit."""
    try:
        mlx, nanobind = version_of("mlx"), version_of("nanobind")
        check_pair(mlx, nanobind)
    except CourseError as error:
        return Finding.fail(str(error).partition(":")[0], install(), stops=COMPILED)
    found = f"mlx {mlx} with nanobind {nanobind}"
    pinned = _pinned()
    if wrong := [f"{name} {want}" for name, want in pinned.items() if want != {"mlx": mlx, "nanobind": nanobind}[name]]:
        return Finding.warn(f"{found}, but {' and '.join(wrong)} is pinned", install())
    return Finding.ok(f"{found}, {'the pinned pair' if mlx in PAIRS else 'as pinned'}")


def _pinned() -> dict[str, str]:
    """What pyproject.toml pins of the two, by name; nothing where it cannot be read."""
    try:
        lines = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    except (OSError, ValueError, KeyError):
        return {}
    pairs = (line.partition(";")[0].partition("==") for line in lines)
    return {
        name.partition("[")[0]: want.strip() for name, _, want in pairs if name.partition("[")[0] in ("mlx", "nanobind")
    }
