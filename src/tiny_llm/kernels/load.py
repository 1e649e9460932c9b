"""Reading a checkpoint into a model on packed weights.

Packed checkpoints stay as they are; dense ones are quantised with this package's own `quantize`, one matrix at a time.
"""

from pathlib import Path

import mlx.core as mx

from ..model.checkpoint import expected_shapes, load_config
from ..model.config import ModelConfig, Quantization
from ..model.qwen3 import Qwen3
from ..model.safetensors import read_safetensors, weight_files
from .packed import QuantizedEmbedding, QuantizedLinear, QuantizedOps
from .quantize import FLOATS, PackedMatrix, quantize

DEFAULT = Quantization(group_size=64, bits=4)
"""How a dense checkpoint is packed."""
PARTS = ("weight", "scales", "biases")


def load_packed_model(
    folder: Path, ops: QuantizedOps, dtype: mx.Dtype | None = None, memory_limit: int | None = None
) -> Qwen3:
    """Read a checkpoint, packed by MLX or dense, into a model whose matrices are packed.

    dtype: of activations and norm weights; None means as stored. Scales and biases stay as they are stored, and a
    dense matrix is quantised in the dtype it is stored in.
    memory_limit: bytes that the packed weights may take, None for any number.
    Raises what `load_config` and `load_weights` raise: ValueError, naming the tensor, for missing, unexpected, wrongly
    shaped, damaged or non-float tensors, or rows that do not divide into groups; FileNotFoundError; MemoryError before
    values are read.
    """
    config = load_config(folder)
    packing = config.quantization or DEFAULT
    stored = {name: w for file in weight_files(folder) for name, w in read_safetensors(file).items()}
    if config.tie_word_embeddings:
        stored = {name: w for name, w in stored.items() if not name.startswith("lm_head.")}
    _check_names(folder, config, stored)
    tensors = {name: _checked(name, shape, stored, packing) for name, shape in expected_shapes(config).items()}
    needed = sum(_packed_bytes(tensor, packing) for tensor in tensors.values())
    if memory_limit is not None and needed > memory_limit:
        raise MemoryError(
            f"the packed weights need {needed / 1e9:.3g} GB, the limit is {memory_limit / 1e9:.3g} GB: "
            "take a smaller model"
        )
    del stored  # a dense matrix can go as soon as it is packed
    weights = {name: _weight(name, tensors.pop(name), packing, dtype) for name in list(tensors)}
    return Qwen3(config, weights, ops)


def _check_names(folder: Path, config: ModelConfig, stored: dict[str, mx.array]) -> None:
    """Every expected tensor is there, dense or in its three parts, and nothing else."""
    expected: set[str] = set()
    for name in expected_shapes(config):
        stem = name.removesuffix("weight")
        packed = config.quantization is not None and stem + "scales" in stored
        expected |= {stem + part for part in PARTS} if packed else {name}
    if missing := sorted(expected - stored.keys()):
        raise ValueError(f"{len(missing)} tensors are missing in {folder}, the first is {missing[0]}")
    if extra := sorted(stored.keys() - expected):
        raise ValueError(f"{len(extra)} unexpected tensors in {folder}, the first is {extra[0]}")


def _checked(
    name: str, shape: tuple[int, ...], stored: dict[str, mx.array], packing: Quantization
) -> PackedMatrix | mx.array:
    """One tensor, packed or dense, with the shape that config.json implies. Nothing is read yet."""
    stem = name.removesuffix("weight")
    tensor = stored[name]
    if stem + "scales" in stored:
        try:
            tensor = PackedMatrix(*(stored[stem + part] for part in PARTS), packing.group_size, packing.bits)
        except ValueError as error:
            raise ValueError(f"{name} is not packed as {packing}: {error}") from None
    elif tensor.dtype not in FLOATS:
        raise ValueError(f"{name} is stored as {tensor.dtype}: expected float32, float16 or bfloat16")
    if tensor.shape != shape:
        raise ValueError(f"{name} has shape {tensor.shape}, config.json implies {shape}")
    if len(shape) == 2 and shape[-1] % packing.group_size:
        raise ValueError(f"{name} has rows of {shape[-1]}: they do not divide into groups of {packing.group_size}")
    return tensor


def _packed_bytes(tensor: PackedMatrix | mx.array, packing: Quantization) -> int:
    """Bytes that the tensor takes in the model: matrices packed, norm weights as they are."""
    if isinstance(tensor, PackedMatrix) or tensor.ndim == 1:
        return tensor.nbytes
    return tensor.size * packing.bits // 8 + 2 * tensor.size // packing.group_size * tensor.dtype.size


def _weight(
    name: str, tensor: PackedMatrix | mx.array, packing: Quantization, dtype: mx.Dtype | None
) -> QuantizedLinear | QuantizedEmbedding | mx.array:
    """The tensor as the model takes it, in memory."""
    if isinstance(tensor, mx.array) and tensor.ndim == 1:
        norm = tensor.astype(dtype or tensor.dtype)
        mx.eval(norm)
        return norm
    packed = tensor if isinstance(tensor, PackedMatrix) else quantize(tensor, packing.group_size, packing.bits)
    mx.eval(packed.words, packed.scales, packed.biases)
    return QuantizedEmbedding(packed, dtype) if name == "model.embed_tokens.weight" else QuantizedLinear(packed)
