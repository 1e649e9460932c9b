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


class Calibration(msgspec.Struct, forbid_unknown_fields=True, tag_field="kind", tag="fitted"):
    """The file. tokens, times_us, sequence_us, pair_us: as of `Fit`. kv_bytes: of a token. engine: its settings."""

    tokens: list[int]
    times_us: list[float]
    sequence_us: float
    pair_us: float
    kv_bytes: int
    about: str
    engine: dict[str, int]
    ops: str
    tp: int = 1

    def cost(self, package: Package) -> "StepCost":
        """The model."""
        line = package.module("table").Line(list(zip(self.tokens, self.times_us, strict=True)))
        return package.module("fitted").Fitted(line, self.sequence_us, self.pair_us)


def calibration_of(fit: Fit, kv_bytes: int, about: str, settings: Settings, ops: str) -> Calibration:
    """For a fit."""
    engine = msgspec.to_builtins(settings)
    return Calibration(list(fit.tokens), list(fit.times), fit.sequence, fit.pair, kv_bytes, about, engine, ops)


def read_calibration(package: Package, path: Path) -> tuple["StepCost", Settings, str]:
    """The model, the engine's settings and its table of operations. Raises CourseError."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Calibration)
        settings = msgspec.convert(found.engine, Settings)
    except OSError as error:
        raise CourseError(f"{path}: {error.strerror}: write it with `sim calibrate --out {path}`") from None
    except msgspec.DecodeError as error:
        raise CourseError(f"{path} is no calibration: {error}: write one with `sim calibrate`") from None
    return found.cost(package), settings, found.ops
