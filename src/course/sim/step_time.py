"""Which model says how long an engine's steps take, by name or from a file.

A file is JSON: {"kind": "linear", "prefill": [a, b, c], "decode": [a, b, c]} in ms, with "large" and "decode_large"
where there are two regimes; or {"kind": "table", "folder": ..., "layers": ..., "overhead_us": ...}, the folder beside
the file; or what `sim calibrate` writes. "tp": GPUs that it was measured on, "kv_bytes": of a token.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from course.errors import CourseError
from course.sim.calibration import Calibration
from course.sim.config import Pools
from course.sim.package import Package
from course.sim.vllm_profile import read_table

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.cost import StepCost

BLOCKS = 16_384
KV_BYTES = 131_072
LINK_BYTES = 50e9
UTILISATION = 0.9
"""Of a GPU's memory that weights and KV may take, as vLLM's default."""


@dataclass(frozen=True)
class Engine:
    """What is known of one engine. kv_blocks, kv_bytes (of a token), link (bytes/s of a NIC): unless told otherwise.

    kv_heads: that its GPUs share.
    """

    cost: "StepCost"
    kv_blocks: int
    kv_bytes: int = KV_BYTES
    link: float = LINK_BYTES
    kv_heads: int = 8


Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=1e6)]


class _Linear(msgspec.Struct, forbid_unknown_fields=True, tag_field="kind", tag="linear"):
    prefill: tuple[Milliseconds, Milliseconds, Milliseconds]
    decode: tuple[Milliseconds, Milliseconds, Milliseconds]
    large: int | None = None
    decode_large: tuple[Milliseconds, Milliseconds, Milliseconds] = (0.0, 0.0, 0.0)
    tp: int = 1
    kv_bytes: int = KV_BYTES
    about: str = ""


class _Table(msgspec.Struct, forbid_unknown_fields=True, tag_field="kind", tag="table"):
    folder: str
    layers: int
    overhead_us: float = 0.0
    tp: int = 1
    kv_bytes: int = KV_BYTES
    about: str = ""


def engine(package: Package, pools: Pools, tp: int) -> Engine:
    """An engine on `tp` GPUs. Raises CourseError."""
    name = pools.step_time or ("roofline" if pools.model or pools.machine else "mocker")
    if name == "roofline":
        return _roofline(package, pools, tp)
    if pools.model or pools.machine:
        raise CourseError(f"model and machine belong to the roofline, not to step-time {name}: leave them out")
    found = _named(package, pools, name)
    if found is None:
        return _from_file(package, pools, Path(name), tp)
    if tp != 1:
        raise CourseError(f"step-time {name} knows one GPU, not tp {tp}: use --tp 1, or --model and --machine")
    return found


def _named(package: Package, pools: Pools, name: str) -> Engine | None:
    cost, blocks = package.module("cost"), pools.kv_blocks or BLOCKS
    if name == "mocker":
        return Engine(cost.Mocker(blocks * pools.block_size), blocks)
    return Engine(cost.OPT_13B_A100, blocks, kv_bytes=819_200) if name == "opt-13b-a100" else None


def _roofline(package: Package, pools: Pools, tp: int) -> Engine:
    module = package.module("roofline")
    if pools.model is None or pools.machine is None:
        raise CourseError("the roofline needs both --model and --machine: for example --model qwen3-8b --machine h100")
    model = _find(pools.model, {f"qwen3-{name}": shape for name, shape in module.QWEN3.items()}, "model")
    machine = _find(pools.machine, module.MACHINES, "machine")
    if model.kv_heads % tp:
        raise CourseError(f"tp {tp} does not divide the {model.kv_heads} KV heads of {pools.model}: use a divisor")
    cost = module.Roofline(machine, model, tp)
    blocks = pools.kv_blocks
    if blocks is None:
        if not machine.memory:
            raise CourseError(f"the memory of {pools.machine} is not known: give --kv-blocks")
        blocks = int((UTILISATION * tp * machine.memory - _weights(model)) // (model.kv_bytes * pools.block_size))
        if blocks < 1:
            raise CourseError(f"{pools.model} does not fit into {tp} x {pools.machine}: raise --tp")
    return Engine(cost, blocks, model.kv_bytes, machine.nic or LINK_BYTES, model.kv_heads)


def _weights(model: object) -> int:
    """Bytes."""
    return model.itemsize * (model.attention_weights + model.experts * model.expert_weights + model.head_weights)


def _find(name: str, known: Mapping[str, object], noun: str) -> object:
    """A value by its name, in any spelling of capitals, spaces and dashes."""
    names = {each.lower().replace(" ", "-"): value for each, value in known.items()}
    if (found := names.get(name.lower().replace(" ", "-"))) is None:
        raise CourseError(f"no {noun} {name!r}: choose from {', '.join(names)}")
    return found


def _from_file(package: Package, pools: Pools, path: Path, tp: int) -> Engine:
    try:
        fit = msgspec.json.decode(path.read_bytes(), type=_Linear | _Table | Calibration)
    except OSError as error:
        known = "mocker, opt-13b-a100, roofline"
        raise CourseError(f"step-time {path} is none of {known}, and no file ({error.strerror})") from None
    except msgspec.DecodeError as error:
        raise CourseError(f"{path} is no step-time model: {error}: `sim calibrate` writes one") from None
    if fit.tp != tp:
        raise CourseError(f"{path} was measured on {fit.tp} GPUs, not {tp}: use --tp {fit.tp}")
    blocks = pools.kv_blocks or BLOCKS
    if isinstance(fit, _Linear):
        cost = package.module("cost").Linear(fit.prefill, fit.decode, fit.large, fit.decode_large)
        return Engine(cost, blocks, fit.kv_bytes)
    if isinstance(fit, Calibration):
        return Engine(fit.cost(package), blocks, fit.kv_bytes)
    folder = path.parent / fit.folder
    return Engine(read_table(package.module("table"), folder, fit.layers, fit.overhead_us), blocks, fit.kv_bytes)
