"""The course's packages: there, importable, and in the locked versions."""

import importlib
import importlib.metadata
import importlib.util
import re
import tomllib

from course.doctor.finding import EVERYTHING, Finding
from course.doctor.install import install
from course.paths import ROOT

_OWN_CHECKS = {"mlx"}  # looked at by itself, because loading it can end a process
_PROGRAMS = {"cmake", "ninja"}
_NAME = re.compile(r"^[\w.-]+")


def probe(full: bool) -> Finding:
    """Missing or broken ones stop the days that use them; other versions are told."""
    try:
        names, locked = _wanted(), _locked()
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Finding.fail(
            f"pyproject.toml and pdm.lock cannot be read ({error})", "git checkout pyproject.toml pdm.lock"
        )
    missing, broken, other, stops = [], [], [], []
    for name in names:
        installed = _installed(name)
        module = name.replace("-", "_")
        if installed is None:
            missing.append(name)
            stops.append(f"module:{module}")
        elif problem := _problem(name, module):
            broken.append(f"{name} ({problem})")
            stops.append(f"module:{module}")
        elif name in locked and locked[name] != installed:
            other.append(f"{name} {installed} instead of {locked[name]}")
    said = [f"missing: {', '.join(missing)}"] * bool(missing) + [f"broken: {', '.join(broken)}"] * bool(broken)
    said += [f"not as locked: {', '.join(other)}"] * bool(other)
    if stops:
        return Finding.fail("; ".join(said), install(bool(broken)), stops=_stops(stops))
    if other:
        return Finding.warn("; ".join(said), install())
    return Finding.ok(f"{len(names)} packages, all as locked")


def _stops(stops: list[str]) -> tuple[str, ...]:
    """Without a program of the build nothing in C++ can be made; the registry itself is read with msgspec."""
    words = {"module:cmake": ("library", "emulator"), "module:ninja": ("library", "emulator")}
    words |= {"module:nanobind": ("library", "emulator"), "module:msgspec": (EVERYTHING,), "module:mlx": (EVERYTHING,)}
    return tuple(dict.fromkeys(word for stop in stops for word in words.get(stop, (stop,))))


def _wanted() -> list[str]:
    """Names of the packages that pyproject.toml asks a learner to have."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = [_NAME.match(line) for line in table["project"]["dependencies"]]
    return list(dict.fromkeys(match[0].lower() for match in found if match))


def _locked() -> dict[str, str]:
    table = tomllib.loads((ROOT / "pdm.lock").read_text(encoding="utf-8"))
    return {package["name"].lower(): package["version"] for package in table["package"]}


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _problem(name: str, module: str) -> str:
    """Why an installed package does not import; "" if it does."""
    if name in _OWN_CHECKS | _PROGRAMS:
        return ""
    try:
        importlib.import_module(module)
    except BaseException as error:  # whatever a damaged package does
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:120]
    return ""
