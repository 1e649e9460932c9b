"""`metal_kernel` is called like MLX's own: names, defaults, counts, generated parameters."""

import inspect
import re
import sys

import mlx.core as mx
import pytest

from course.emulator.errors import KernelError
from course.emulator.metal_kernel import EmulatedKernel, metal_kernel
from course.emulator.signature import THREAD_ATTRIBUTES, Text, signature

SQUARE = {
    "name": "square",
    "input_names": ["x"],
    "output_names": ["out"],
    "source": "uint i = thread_position_in_grid.x; out[i] = x[i] * x[i];",
}


def parameters(signature_text: str) -> list[tuple[str, str | None]]:
    """(name, default or None) of each parameter in a nanobind signature `f(a: int, b: str = '') -> object`."""
    inside = signature_text[signature_text.index("(") + 1 : signature_text.rindex(") ->")]
    found, depth, word = [], 0, ""
    for letter in inside + ",":
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            found.append(word.strip())
            word = ""
        else:
            word += letter
    words = [part for part in found if part not in ("self", "*", "")]
    return [(part.partition(":")[0].strip(), part.partition("=")[2].strip() or None) for part in words]


def ours(function: object) -> list[tuple[str, str | None]]:
    params = inspect.signature(function).parameters.values()
    return [
        (p.name, None if p.default is inspect.Parameter.empty else repr(p.default)) for p in params if p.name != "self"
    ]


def call(kernel: object, x: mx.array, **changes: object) -> list[mx.array]:
    arguments = {
        "inputs": [x],
        "grid": (x.size, 1, 1),
        "threadgroup": (32, 1, 1),
        "output_shapes": [x.shape],
        "output_dtypes": [x.dtype],
    }
    return kernel(**(arguments | changes))


def test_the_factory_has_the_arguments_of_mlx():
    theirs = parameters(mx.fast.metal_kernel.__doc__.partition("\n")[0])
    assert ours(metal_kernel) == theirs


def test_the_callable_has_the_arguments_of_mlx():
    theirs = mx.fast.metal_kernel(**SQUARE)
    line = theirs.__doc__.partition("\n")[0]
    assert line.startswith("__call__(self, *,"), "MLX's callable takes keywords only"
    kinds = inspect.signature(EmulatedKernel.__call__).parameters
    assert all(p.kind is p.KEYWORD_ONLY for p in kinds.values() if p.name != "self")
    text = re.sub(r"template: .* = None, init_value", "template: x = None, init_value", line + " -> x")
    expected = [(name, {"false": "False"}.get(default, default)) for name, default in parameters(text)]
    assert ours(EmulatedKernel.__call__) == expected


@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac has Metal")
def test_mlx_makes_a_kernel_anywhere_and_runs_it_on_a_mac_only():
    with pytest.raises(RuntimeError, match="No Metal back-end"):
        call(mx.fast.metal_kernel(**SQUARE), mx.ones(3))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"inputs": []}, "Expected `inputs` to have size 1 (x) but got size 0"),
        ({"inputs": [mx.ones(3), 1]}, "Expected `inputs` to have size 1 (x) but got size 2"),
        ({"output_shapes": []}, "Expected `output_shapes` to have size 1 (out) but got size 0"),
        ({"output_dtypes": [mx.float32] * 2}, "Expected `output_dtypes` to have size 1 (out) but got size 2"),
    ],
)
def test_wrong_counts_are_told(changes: dict[str, object], words: str):
    with pytest.raises(ValueError, match=re.escape(words)):
        call(metal_kernel(**SQUARE), mx.ones(3), **changes)


def test_missing_and_unknown_arguments_are_type_errors():
    kernel = metal_kernel(**SQUARE)
    with pytest.raises(TypeError, match="missing"):
        kernel(inputs=[mx.ones(3)])
    with pytest.raises(TypeError, match="unexpected"):
        call(kernel, mx.ones(3), block=1)


def test_a_template_argument_is_a_dtype_a_number_or_a_truth_value():
    with pytest.raises(TypeError, match=r"Invalid template argument 1\.5"):
        call(metal_kernel(**SQUARE), mx.ones(3), template=[("T", 1.5)])


def test_a_kernel_needs_an_output_and_names():
    with pytest.raises(ValueError, match="at least one output"):
        metal_kernel(**(SQUARE | {"output_names": []}))
    with pytest.raises(KernelError, match="cannot be a name"):
        metal_kernel(**(SQUARE | {"name": "my kernel"}))


def written(source: str, x: mx.array, **text: object) -> str:
    words = {"header": "", "atomic_outputs": False} | text
    return signature(Text("k", ("x",), ("out",), source, **words), [x], [mx.float32], [("T", x.dtype), ("N", 3)]).source


def test_small_inputs_are_constant_and_scalars_are_references():
    assert "const constant float* x [[buffer(0)]]" in written("", mx.ones(7))
    assert "const device float* x [[buffer(0)]]" in written("", mx.ones(8))
    assert "const constant float& x [[buffer(0)]]" in written("", mx.array(1.0))
    assert "const constant int32_t& x [[buffer(0)]]" in written("", mx.array(1))


def test_shape_strides_and_ndim_are_passed_where_the_body_names_them():
    text = written("x_shape x_strides x_ndim", mx.ones((2, 8)))
    assert "const constant int* x_shape [[buffer(1)]]" in text
    assert "const constant int64_t* x_strides [[buffer(2)]]" in text
    assert "const constant int& x_ndim [[buffer(3)]]" in text
    assert "device float* out [[buffer(4)]]" in text
    assert "x_shape" not in written("", mx.ones((2, 8)))
    assert "x_shape [[" not in written("x_shape", mx.array(1.0))


@pytest.mark.parametrize("name", THREAD_ATTRIBUTES)
def test_thread_attributes_are_passed_where_the_body_names_them(name: str):
    parameter = f"{THREAD_ATTRIBUTES[name]} {name} [[{name}]]"
    assert parameter in written(f"out[0] = {name};", mx.ones(8))
    assert parameter not in written("", mx.ones(8))


def test_templates_and_atomic_outputs():
    text = written("", mx.ones(8, mx.bfloat16), atomic_outputs=True)
    assert "template <typename T, int N>" in text
    assert "decltype(custom_kernel_k<bfloat16_t, 3>)" in text
    assert "device atomic<float>* out" in text


def test_a_type_that_metal_does_not_have():
    with pytest.raises(KernelError, match=r"kernels take no mlx\.core\.complex64"):
        written("", mx.ones(8, mx.complex64))
