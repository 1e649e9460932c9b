"""What `sim calibrate` writes: a fitted step-time model, and for which engine it holds."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from course.errors import CourseError
from course.sim.fit import Fit
from course.sim.package import Package
from course.sim.real_engine import Settings

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.cost import StepCost


class Calibration(msgspec.Struct, forbid_unknown_fields=True, tag_field="kind", tag="linear"):
    """The file. prefill, decode: as of `Linear`, in ms. kv_bytes: of a token. engine: its settings."""

    prefill: tuple[float, float, float]
    decode: tuple[float, float, float]
    kv_bytes: int
    about: str
    engine: dict[str, int]
    ops: str


def calibration_of(fit: Fit, kv_bytes: int, about: str, settings: Settings, ops: str) -> Calibration:
    """For a fit."""
    return Calibration(fit.prefill, fit.decode, kv_bytes, about, msgspec.to_builtins(settings), ops)


def read_calibration(package: Package, path: Path) -> tuple["StepCost", Settings, str]:
    """The model, the engine's settings and its table of operations. Raises CourseError."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Calibration)
        settings = msgspec.convert(found.engine, Settings)
    except OSError as error:
        raise CourseError(f"{path}: {error.strerror}: write it with `sim calibrate --out {path}`") from None
    except msgspec.DecodeError as error:
        raise CourseError(f"{path} is no calibration: {error}: write one with `sim calibrate`") from None
    return package.module("cost").Linear(found.prefill, found.decode), settings, found.ops
