"""The checkpoint writer of the graded tests: MLX reads what it writes, and unpacks to the same numbers."""

import json

import mlx.core as mx
import numpy as np
import pytest

from course.checkpoint_files import files_of, folder_of, packed, safetensors, unpacked, wide


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16, mx.uint32, mx.int32, mx.uint8])
def test_mlx_reads_the_bytes(dtype):
    tensors = {"a": mx.arange(6).reshape(2, 3).astype(dtype), "b.weight": mx.array([7]).astype(dtype)}
    with folder_of({"model.safetensors": safetensors(tensors)}) as folder:
        got = mx.load(str(folder / "model.safetensors"))
        for name, want in tensors.items():
            assert got[name].dtype == dtype
            assert got[name].tolist() == want.tolist()


def test_shards_hold_every_tensor_once():
    tensors = {f"t{i}": mx.array([i]) for i in range(7)}
    files = files_of(tensors, shards=3)
    index = json.loads(files.pop("model.safetensors.index.json"))["weight_map"]
    assert index.keys() == tensors.keys()
    assert set(index.values()) == files.keys()
    assert len(files) == 3
    with folder_of(files) as folder:
        assert all(name in mx.load(str(folder / file)) for name, file in index.items())


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("group_size", [32, 64, 128])
def test_unpacks_as_mlx_does(bits, group_size):
    mx.random.seed(bits + group_size)
    tensors = {"a.weight": mx.random.normal((5, 256)), "norm.weight": mx.ones(3), "left.weight": mx.ones((2, 256))}
    stored = packed(tensors, group_size, bits, leave=("left.weight",))
    parts = [stored[f"a.{part}"] for part in ("weight", "scales", "biases")]
    want = mx.dequantize(*parts, group_size=group_size, bits=bits)
    got = unpacked(stored, bits)
    assert got.keys() == tensors.keys()
    np.testing.assert_allclose(got["a.weight"], wide(want), atol=1e-6)
    assert stored["left.weight"] is tensors["left.weight"]
