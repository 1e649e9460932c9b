"""Models on packed weights: what the loader accepts and refuses, the tables, and live mlx-lm on the 4-bit model."""

import json
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
from tokenizers import Tokenizer

from course.affine import Rule
from course.checkpoint_files import files_of, folder_of, packed, unpacked
from course.checkpoints import Shape, hf_config, random_weights
from course.folder import read_json
from course.paths import MODELS
from course.qwen3_float64 import Qwen3Float64
from tiny_llm_ref.kernels.load import load_packed_model
from tiny_llm_ref.kernels.packed import QuantizedEmbedding, QuantizedLinear, QuantizedOps
from tiny_llm_ref.kernels.quantize import PackedMatrix, dequantize
from tiny_llm_ref.kernels.tables import TABLES, make_ops
from tiny_llm_ref.model.checkpoint import load_config
from tiny_llm_ref.model.qwen3 import Ops, Qwen3

TINY = MODELS / "tiny-4bit"
SHAPE = Shape(hidden=64, heads=4, kv_heads=2, head_dim=32, intermediate=128, vocab=37, tied=False, layers=1)
UP = "model.layers.0.mlp.up_proj."


def tensors(dtype: mx.Dtype = mx.float32, group_size: int = 64, bits: int = 4) -> dict[str, mx.array]:
    dense = {name: mx.array(w).astype(dtype) for name, w in random_weights(np.random.default_rng(0), SHAPE)}
    return packed(dense, group_size, bits)


def load(stored: dict[str, mx.array], quantization: dict | None = None, dtype=None, memory_limit=None) -> Qwen3:
    quantization = {"group_size": 64, "bits": 4} if quantization is None else quantization
    config = json.dumps(hf_config(SHAPE) | {"quantization": quantization}).encode()
    with folder_of(files_of(stored) | {"config.json": config}) as folder:
        return load_packed_model(folder, QuantizedOps(), dtype, memory_limit)


def prompts() -> list[list[int]]:
    """Ten pieces of text that the model might meet, 16 to 20 tokens each."""
    tokenizer = Tokenizer.from_file(str(TINY / "tokenizer.json"))
    tokens = tokenizer.encode((MODELS / "samples.md").read_text(encoding="utf-8")).ids
    return [tokens[start : start + 16 + start % 5] for start in range(0, 550, 55)]


def mlx_lm_model(folder: Path):
    """mlx-lm's model of a packed checkpoint, with scales, biases and norms in float32."""
    qwen3 = pytest.importorskip("mlx_lm.models.qwen3", reason="mlx-lm is in the dev group")
    nn = pytest.importorskip("mlx.nn")
    model = qwen3.Model(qwen3.ModelArgs.from_dict(read_json(folder / "config.json")))
    nn.quantize(model, group_size=64, bits=4)
    stored = mx.load(str(folder / "model.safetensors"))
    wide = {name: w if w.dtype == mx.uint32 else w.astype(mx.float32) for name, w in stored.items()}
    model.load_weights(list(wide.items()))
    return model


def test_packed_model_scores_as_mlx_lm_and_as_the_dense_model():
    stored = mx.load(str(TINY / "model.safetensors"))
    dense = {name: mx.array(w.astype(np.float32)) for name, w in unpacked(stored, 4).items()}
    plain = Qwen3(load_config(TINY), dense)
    small = load_packed_model(TINY, QuantizedOps(), mx.float32)
    theirs = mlx_lm_model(TINY)
    texts = prompts()
    assert min(map(len, texts)) >= 16
    for tokens in texts:
        tokens = mx.array([tokens])
        logits = np.array(small(tokens))
        for other in (np.array(plain(tokens)), np.array(theirs(tokens))):
            assert np.abs(logits - other).max() < 1e-4 * np.abs(other).max()
            best = np.sort(other, axis=-1)
            sure = best[..., -1] - best[..., -2] > 2e-3
            assert (logits.argmax(-1) == other.argmax(-1))[sure].all()


def test_dense_checkpoint_is_packed_as_mlx_lm_would():
    """models/tiny-4bit was made by `mx.quantize` from models/tiny."""
    mine, stored = load_packed_model(MODELS / "tiny", QuantizedOps()), load_packed_model(TINY, QuantizedOps())
    pairs = [(mine.embedding, stored.embedding)]
    pairs += [(a.mlp.w_down, b.mlp.w_down) for a, b in zip(mine.layers, stored.layers, strict=True)]
    for a, b in pairs:
        assert mx.array_equal(a.packed.words, b.packed.words)
        assert mx.array_equal(a.packed.scales, b.packed.scales)
        assert mx.array_equal(a.packed.biases, b.packed.biases)


@pytest.mark.parametrize("dtype", [None, mx.float32, mx.float16])
@pytest.mark.parametrize("stored", [mx.float32, mx.bfloat16])
def test_dtype_is_that_of_the_activations(stored, dtype):
    model = load(tensors(stored), dtype=dtype)
    tokens = mx.array([[1, 2, 3]])
    assert model.hidden(tokens).dtype == (dtype or stored)
    assert model(tokens).dtype == (dtype or stored)
    assert model.layers[0].mlp.w_up.packed.scales.dtype == stored


def test_a_matrix_left_dense_in_a_packed_checkpoint_is_packed_too():
    stored = tensors()
    words, scales, biases = (stored.pop(UP + part) for part in ("weight", "scales", "biases"))
    dense = dequantize(PackedMatrix(words, scales, biases))
    model = load(stored | {UP + "weight": dense})
    assert isinstance(model.layers[0].mlp.w_up, QuantizedLinear)
    assert mx.array_equal(model.layers[0].mlp.w_up.packed.words, mx.quantize(dense, 64, 4)[0])


def test_head_beside_tied_embeddings_is_ignored():
    tied = Shape(**{**vars(SHAPE), "tied": True})
    config = json.dumps(hf_config(tied) | {"quantization": {"group_size": 64, "bits": 4}}).encode()
    with folder_of(files_of(tensors()) | {"config.json": config}) as folder:
        model = load_packed_model(folder, QuantizedOps(), mx.float32)
    want = Qwen3Float64(tied, unpacked(tensors(), 4)).logits(np.array([[5, 6]]))
    assert model.lm_head is None
    assert np.abs(np.array(model(mx.array([[5, 6]]))) - want).max() < 1e-4


def without(name: str) -> dict[str, mx.array]:
    return {key: w for key, w in tensors().items() if key != name}


@pytest.mark.parametrize(
    ("stored", "quantization", "words"),
    [
        (lambda: without(UP + "weight"), None, UP + "weight"),
        (lambda: without(UP + "biases"), None, UP + "biases"),
        (lambda: without(UP + "scales"), None, UP + "biases"),  # two words more than a dense matrix has
        (lambda: without("model.norm.weight"), None, "model.norm.weight"),
        (lambda: tensors() | {"spare.weight": mx.zeros((2,))}, None, "spare.weight"),
        (lambda: tensors() | {UP + "weight": mx.zeros((128, 16), mx.uint32)}, None, UP + "weight"),
        (lambda: tensors() | {UP + "scales": mx.zeros((128, 2))}, None, UP + "weight"),
        (lambda: tensors() | {UP + "scales": mx.zeros((128, 1), mx.int32)}, None, UP + "weight"),
        (lambda: tensors() | {"model.norm.weight": mx.zeros((64,), mx.int32)}, None, "model.norm.weight"),
        (lambda: tensors() | {"model.norm.weight": mx.zeros((32,))}, None, "model.norm.weight"),
        (tensors, {}, "unexpected tensors.*lm_head.biases"),  # packed, but config.json does not say so
        (tensors, {"group_size": 64, "bits": 8}, "weight"),
        (tensors, {"group_size": 32, "bits": 4}, "weight"),
        (lambda: dict(random_tensors()), {"group_size": 128, "bits": 4}, "groups of 128"),
    ],
)
def test_tensors_that_do_not_fit_are_refused_by_name(stored, quantization, words):
    with pytest.raises(ValueError, match=words):
        load(stored(), quantization)


def random_tensors() -> list[tuple[str, mx.array]]:
    return [(name, mx.array(w)) for name, w in random_weights(np.random.default_rng(0), SHAPE)]


def test_missing_and_damaged_files_are_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(hf_config(SHAPE)))
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors"):
        load_packed_model(tmp_path, QuantizedOps())
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(ValueError, match="damaged"):
        load_packed_model(tmp_path, QuantizedOps())


@pytest.mark.parametrize("stored_dense", [True, False])
def test_memory_limit_counts_packed_bytes(stored_dense):
    stored = dict(random_tensors()) if stored_dense else tensors()
    needed = sum(w.nbytes for w in tensors().values())
    load(stored, memory_limit=needed)
    with pytest.raises(MemoryError, match="limit"):
        load(stored, memory_limit=needed - 1)


def test_a_step_can_be_replaced_alone():
    calls = []

    class Noted(QuantizedOps):
        """Notes the steps of a block."""

        def linear(self, x, w):
            calls.append("linear")
            return super().linear(x, w)

        def norm(self, x, norm):
            calls.append("norm")
            return super().norm(x, norm)

        def rope(self, x, rope, offset):
            calls.append("rope")
            return super().rope(x, rope, offset)

        def swiglu(self, gate, up):
            calls.append("swiglu")
            return super().swiglu(gate, up)

        def add(self, x, y):
            calls.append("add")
            return super().add(x, y)

    load_packed_model(TINY, Noted())(mx.array([[1]]))
    assert {step: calls.count(step) for step in calls} == {
        "norm": 4 * 4 + 1,
        "linear": 7 * 4 + 1,
        "rope": 2 * 4,
        "swiglu": 4,
        "add": 2 * 4,
    }


def test_tables_are_made_by_name():
    for name, table in (("python", Ops), ("packed", QuantizedOps)):
        # By name: a test that made a `Solution` has the package imported anew, and the classes with it.
        made = type(make_ops(name))
        assert (made.__module__, made.__qualname__) == (table.__module__, table.__qualname__)
    assert list(TABLES) == ["python", "dense", "packed", "cpu", "fused", "flash", "metal", "metal-flash"]
    with pytest.raises(ValueError, match=r"'gpu'.*python, dense, packed"):
        make_ops("gpu")


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
def test_the_rule_of_the_tests_is_that_of_mlx(dtype, bits):
    w = mx.random.normal((16, 128), key=mx.random.key(3)).astype(dtype)
    for got, want in zip(Rule().quantize(w, 32, bits), mx.quantize(w, 32, bits, stream=mx.cpu), strict=True):
        assert np.array_equal(np.array(mx.array(got).astype(mx.float32)), np.array(want.astype(mx.float32)))


def test_packed_matrix_checks_its_parts():
    words, scales = mx.zeros((3, 8), mx.uint32), mx.zeros((3, 1))
    assert PackedMatrix(words, scales, scales).shape == (3, 64)
    assert PackedMatrix(words, scales, scales).nbytes == 3 * (8 + 1 + 1) * 4
    for parts, sizes, words_of_error in (
        ((words.astype(mx.int32), scales, scales), (), "int32"),
        ((words, scales, scales.astype(mx.float16)), (), "float16"),
        ((words, scales, mx.zeros((3, 2))), (), r"\(3, 2\)"),
        ((words, scales, scales), (32, 4), "groups of 32"),
        ((words, scales, scales), (64, 3), "bits 3"),
        ((words, scales, scales), (48, 4), "group_size 48"),
        ((mx.zeros((3, 4), mx.uint32), mx.zeros((3, 0)), mx.zeros((3, 0))), (), "do not fit together"),
    ):
        with pytest.raises(ValueError, match=words_of_error):
            PackedMatrix(*parts, *sizes)


def test_embedding_takes_the_dtype_of_its_scales_by_default():
    scales = mx.ones((3, 1), mx.bfloat16)
    table = PackedMatrix(mx.zeros((3, 8), mx.uint32), scales, scales)
    assert QuantizedEmbedding(table).dtype == mx.bfloat16
    assert QuantizedEmbedding(table, mx.float32).dtype == mx.float32
