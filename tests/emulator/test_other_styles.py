"""Larger kernels that others wrote: MLX's own run checked, are right, and nothing is found in them.

Their source comes with the installed MLX. Function constants, which the emulator does not model, are set to false.
"""

import re
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from course.emulator import compiler
from course.emulator.preprocess import preprocess
from course.emulator.runtime import Library, Source, launch, take_records
from course.emulator.translate.translator import read, translate

INCLUDE = Path(mx.__file__).parent / "include"
KERNELS = "mlx/backend/metal/kernels"
TAG = 1_000_000_007

# What MLX's headers expect of those that the emulator replaces, and a header whose specialisations differ only in the
# address space.
DEFINES = """#define SOFTMAX_N_READS 4
template <bool C, typename T, typename U> struct ConditionalType { using type = U; };
template <typename T, typename U> struct ConditionalType<true, T, U> { using type = T; };
"""
TRAITS = """#pragma once
namespace metal {
template <typename... Ts> struct make_void { typedef void type; };
template <typename... Ts> using void_t = typename make_void<Ts...>::type;
template <typename T> struct is_empty : bool_constant<__is_empty(T)> {};
template <class T> struct is_static : bool_constant<is_empty<T>::value> {};
template <typename T> struct pointer_element {};
template <typename T> struct pointer_element<T*> { using type = remove_cv_t<T>; };
template <typename T> using pointer_element_t = typename pointer_element<remove_cv_t<T>>::type;
}
"""


@pytest.fixture
def build(tmp_path: Path):
    """Compiles headers of MLX with one instantiation, named `k`, to a checked library."""
    traits = tmp_path / "include" / KERNELS / "steel" / "utils" / "type_traits.h"
    traits.parent.mkdir(parents=True)
    traits.write_text(TRAITS, encoding="utf-8")

    def build(headers: list[str], function: str) -> Library:
        lines = [f'#include "{KERNELS}/{header}.h"' for header in ("utils", *headers)]
        lines.insert(1, f"using namespace metal;\n{DEFINES}")
        instance = f'template [[host_name("k")]] [[kernel]] decltype({function}) {function};\n'
        text = preprocess("\n".join([*lines, instance]), compiler.compiler(), tmp_path / "include", INCLUDE)
        text = re.sub(r" \[\[function_constant\(\d+\)\]\];", " = false;", text)
        text = re.sub(r"\[\[function_constant\(\w+\)\]\]", "", text)
        own = frozenset(re.findall(r'^# \d+ "([^"]+)"', text, re.MULTILINE))
        (tmp_path / "k.cpp").write_text(translate(read(text, own)), encoding="utf-8")
        compiler.compile_to(tmp_path / "k.so", tmp_path / "k.cpp", True, own)
        return Library(tmp_path / "k.so")

    return build


def run(
    library: Library, inputs: list[mx.array], bindings: list[Source], shape: tuple[int, ...], **sizes: tuple[int, ...]
) -> mx.array:
    """The float32 output of one launch; fails on findings."""
    (out,) = launch(
        library,
        "k",
        inputs=inputs,
        bindings=bindings,
        output_shapes=[shape],
        output_dtypes=[mx.float32],
        tag=TAG,
        stream=mx.cpu,
        **sizes,
    )
    mx.eval(out)
    (record,) = take_records(TAG)
    assert record.findings == []
    return out


def normal(*shape: int) -> mx.array:
    return mx.array(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def difference(a: mx.array, b: mx.array) -> float:
    return mx.abs(a - b).max().item()


@pytest.mark.parametrize(("function", "threads"), [("softmax_single_row<float>", 256), ("softmax_looped<float>", 1024)])
def test_softmax(build, function: str, threads: int):
    x = normal(3, 1000)
    bindings = [("input", 0), ("output", 0), ("constant", 1)]
    library = build(["softmax"], function)
    out = run(library, [x, mx.array(1000)], bindings, x.shape, grid=(3 * threads, 1, 1), threadgroup=(threads, 1, 1))
    assert difference(out, mx.softmax(x, axis=-1)) < 1e-6


def test_attention_of_one_query(build):
    q, k = normal(1, 4, 1, 64), normal(1, 2, 37, 64)
    v = k * 2 + 1
    strides = [mx.array(n, mx.uint64) for n in (37 * 64, 64, 37 * 64, 64)]
    library = build(["sdpa_vector"], "sdpa_vector<float, 64>")
    bindings: list[Source] = [("input", 0), ("input", 1), ("input", 2), ("output", 0)]
    bindings += [("constant", index) for index in range(3, 10)]
    unused = max(argument.index for argument in library.arguments("k") if argument.kind == "buffer") - 10
    bindings += [("bytes", bytes(64))] * unused  # mask and sinks
    inputs = [q, k, v, mx.array(2), mx.array(37), *strides, mx.array(0.125)]
    out = run(library, inputs, bindings, q.shape, grid=(4 * 1024, 1, 1), threadgroup=(1024, 1, 1))
    assert difference(out, mx.fast.scaled_dot_product_attention(q, k, v, scale=0.125)) < 1e-5


def test_quantized_matrix_times_vector(build):
    w, scales, biases = mx.quantize(normal(40, 256), 64, 4)
    x = normal(1, 256)
    library = build(["steel/gemm/gemm", "quantized_utils", "quantized"], "affine_qmv<float, 64, 4, false>")
    batch = [mx.array(0), mx.array([1]), mx.array([0], mx.int64), mx.array(0), mx.array([1])]
    batch += [mx.array([0], mx.int64)] * 3
    bindings: list[Source] = [("input", index) for index in range(4)]
    bindings += [("output", 0), *(("constant", index) for index in range(4, 14))]
    inputs = [w, scales, biases, x, mx.array(256), mx.array(40), *batch]
    out = run(library, inputs, bindings, (1, 40), grid=(32, 2 * 5, 1), threadgroup=(32, 2, 1))
    assert difference(out, x @ mx.dequantize(w, scales, biases, 64, 4).T) < 1e-4
