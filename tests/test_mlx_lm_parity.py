"""The reference Qwen3 against live mlx-lm and golden logits of transformers: float32, logits of unit scale."""

import mlx.core as mx
import numpy as np
import pytest

from course.checkpoints import Quantization, Shape, make_checkpoint
from course.folder import read_json
from course.golden import GOLDEN_SHAPES, load_golden
from tiny_llm_ref.model.checkpoint import load_config, load_model, load_weights
from tiny_llm_ref.model.qwen3 import Qwen3

LIMIT = 1e-4
SHAPES = {
    "grouped-query": Shape(),
    "multi-query": Shape(kv_heads=1),
    "multi-head, untied head": Shape(hidden=36, heads=3, kv_heads=3, head_dim=12, tied=False),
    "head_dim above hidden / heads": Shape(hidden=32, heads=2, kv_heads=1, head_dim=48, layers=3),
    "head_dim below hidden / heads": Shape(hidden=96, heads=2, kv_heads=2, head_dim=8, rope_theta=1e4),
    "one layer, large eps": Shape(layers=1, rms_norm_eps=1e-2, tied=False),
}


def largest_difference(got: mx.array, want: mx.array | np.ndarray) -> float:
    return float(np.abs(np.array(got, dtype=np.float64) - np.array(want, dtype=np.float64)).max())


def mlx_lm_logits(folder, weights: dict[str, mx.array], tokens: mx.array) -> mx.array:
    qwen3 = pytest.importorskip("mlx_lm.models.qwen3", reason="mlx-lm is in the dev group")
    model = qwen3.Model(qwen3.ModelArgs.from_dict(read_json(folder / "config.json")))
    model.load_weights(list(weights.items()))
    return model(tokens)


@pytest.mark.parametrize("nested_rope", [False, True], ids=["rope_theta", "rope_parameters"])
@pytest.mark.parametrize("name", SHAPES)
def test_reference_computes_what_mlx_lm_computes(tmp_path, name, nested_rope):
    shape = SHAPES[name]
    rng = np.random.default_rng(list(SHAPES).index(name))
    folder = make_checkpoint(tmp_path, rng, shape, shards=1 + 2 * nested_rope, nested_rope=nested_rope)
    tokens = mx.array(rng.integers(shape.vocab, size=(2, 33)))
    ours = load_model(folder, mx.float32)(tokens)
    theirs = mlx_lm_logits(folder, load_weights(folder, load_config(folder)), tokens)
    assert ours.dtype == mx.float32
    assert 0.5 < float(mx.std(theirs)) < 2.0
    assert largest_difference(ours, theirs) < LIMIT


@pytest.mark.parametrize("bits", [4, 8])
def test_dequantised_weights_are_those_of_mlx_lm(tmp_path, bits):
    """mlx-lm multiplies packed weights directly; here it gets ours unpacked from the same file."""
    shape = Shape(hidden=64, intermediate=128, heads=2, kv_heads=1, head_dim=32)
    rng = np.random.default_rng(bits)
    folder = make_checkpoint(tmp_path, rng, shape, quantization=Quantization(32, bits))
    tokens = mx.array(rng.integers(shape.vocab, size=(1, 9)))
    qwen3 = pytest.importorskip("mlx_lm.models.qwen3", reason="mlx-lm is in the dev group")
    nn = pytest.importorskip("mlx.nn")
    packed = qwen3.Model(qwen3.ModelArgs.from_dict(read_json(folder / "config.json")))
    nn.quantize(packed, group_size=32, bits=bits)
    packed.load_weights(str(folder / "model.safetensors"))
    assert largest_difference(load_model(folder, mx.float32)(tokens), packed(tokens)) < LIMIT


@pytest.mark.parametrize("name", GOLDEN_SHAPES)
def test_reference_computes_what_transformers_computes(tmp_path, name):
    golden = load_golden(name)
    folder = make_checkpoint(tmp_path, np.random.default_rng(list(GOLDEN_SHAPES).index(name)), golden.shape)
    weights = {key: mx.array(value) for key, value in golden.weights.items()}
    stored = load_weights(folder, load_config(folder))
    assert all(mx.array_equal(stored[key], weights[key]) for key in weights)
    logits = Qwen3(load_config(folder), weights)(mx.array(golden.tokens))
    assert largest_difference(logits, golden.logits) < LIMIT
    assert largest_difference(logits[:, ::-1], golden.logits) > 0.1
