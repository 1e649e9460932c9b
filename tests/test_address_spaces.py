"""The reference's Metal kernels keep their address spaces apart, as clang sees them.

The emulator has one address space, a Mac's compiler has four. Clang knows the same four in C++ for OpenCL, so each
kernel is rewritten to that and type-checked: a `device` pointer to threadgroup memory is an error there as it is on a
Mac.
"""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import mlx.core as mx
import pytest

from course.emulator.session import recording
from course.kernels.examples import examples
from tiny_llm_ref.kernels.metal import add, rms_norm, rope, swiglu
from tiny_llm_ref.kernels.metal_flash import metal_flash_attention
from tiny_llm_ref.kernels.metal_matmul import quantized_matmul, quantized_matvec, split_k_matvec
from tiny_llm_ref.kernels.metal_paged import metal_paged_attention
from tiny_llm_ref.kernels.quantize import quantize

COMMAND = ["clang", "-x", "cl", "-cl-std=clc++2021", "-Xclang", "-finclude-default-header", "-target", "spir64"]

# What the kernels use of the Metal library, with Metal's address spaces in the parameters.
METAL = """
#define device __global
#define threadgroup __local
#define constant __constant
#define thread __private
#undef INFINITY
#define INFINITY __builtin_inff()
typedef int int32_t; typedef long int64_t; typedef unsigned uint32_t;
enum class mem_flags { mem_none, mem_device, mem_threadgroup };
void threadgroup_barrier(mem_flags);
void simdgroup_barrier(mem_flags);
float simd_sum(float);
float simd_max(float);
float simd_shuffle_xor(float, ushort);
template <typename T, int R, int C> struct simdgroup_matrix { T elements[2]; };
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
template <typename T, int R, int C> simdgroup_matrix<T, R, C> make_filled_simdgroup_matrix(T);
#define MATRIX thread simdgroup_float8x8&
void simdgroup_load(MATRIX, const threadgroup float*, ulong = 8, ulong2 = ulong2(0), bool = false);
void simdgroup_load(MATRIX, const device float*, ulong = 8, ulong2 = ulong2(0), bool = false);
void simdgroup_store(simdgroup_float8x8, threadgroup float*, ulong = 8, ulong2 = ulong2(0), bool = false);
void simdgroup_store(simdgroup_float8x8, device float*, ulong = 8, ulong2 = ulong2(0), bool = false);
void simdgroup_multiply(MATRIX, MATRIX, MATRIX);
void simdgroup_multiply_accumulate(MATRIX, MATRIX, MATRIX, MATRIX);
"""

VALUES = {"TRADITIONAL": "true", "TOKENS": "3", "GROUP": "64", "D": "80", "KEYS": "16"}
"""Template arguments to check the kernels with; every type is float."""


def opencl(source: str) -> str:
    """A kernel's complete Metal source, as MLX would compile it, in C++ for OpenCL."""
    source = re.sub(
        r"^#include .*\n|^using namespace metal;\n|^template \[\[host_name.*\n", "", source, flags=re.MULTILINE
    )
    # OpenCL has no templated kernels: the template's arguments become constants of the body.
    arguments = re.search(r"^template <(.*)>\n\[\[kernel\]\]", source, re.MULTILINE)
    constants = ""
    for declaration in arguments[1].split(", ") if arguments else ():
        kind, name = declaration.split()
        constants += f"typedef float {name}; " if kind == "typename" else f"constexpr {kind} {name} = {VALUES[name]}; "
    source = re.sub(r"^template <.*>\n(?=\[\[kernel\]\])", "", source, flags=re.MULTILINE)
    source = source.replace("[[kernel]]", "__kernel").replace(") {\n#line", f") {{ {constants}\n#line", 1)
    return METAL + re.sub(r"\[\[.*?\]\]", "", source)


def problems(source: str, folder: Path) -> str:
    file = folder / "kernel.clcpp"
    file.write_text(opencl(source), encoding="utf-8")
    found = subprocess.run([*COMMAND, "-fsyntax-only", str(file)], capture_output=True, text=True, timeout=60)
    return "\n".join(line for line in found.stderr.splitlines() if "error:" in line)


def launched(runs: Iterable[Callable[[], object]]) -> dict[str, str]:
    """The complete Metal source of each kernel that `runs` call."""
    if shutil.which("clang") is None or subprocess.run([*COMMAND, "-E", "/dev/null"], capture_output=True).returncode:
        pytest.skip("needs clang with OpenCL")
    with recording(checked=False) as session:
        for run in runs:
            run()
    return {launch.kernel: launch.source for launch in session.launches}


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    return launched(examples("tiny_llm_ref").values())


def test_every_kernel_keeps_address_spaces_apart(sources: dict[str, str], tmp_path: Path) -> None:
    assert len(sources) == 12
    assert {name: problems(source, tmp_path) for name, source in sources.items()} == dict.fromkeys(sources, "")


def test_inputs_in_constant_memory(tmp_path: Path) -> None:
    """MLX passes an input of fewer than 8 numbers in another address space."""
    x, table, matrix = mx.ones((1, 1, 1, 2)), mx.ones((1, 1)), quantize(mx.ones((1, 32)), 32)
    pool = mx.ones((1, 1, 2, 8)), mx.ones((1, 1, 2, 8)), mx.array([[0]])
    sources = launched(
        [
            lambda: add(x, x),
            lambda: swiglu(x, x),
            lambda: rms_norm(x, mx.ones(2), 1e-6),
            lambda: rope(x, table, table),
            lambda: split_k_matvec(mx.ones(32), matrix, 1),
            lambda: quantized_matvec(mx.ones(32), matrix),
            lambda: quantized_matmul(mx.ones(32), matrix),
            lambda: metal_flash_attention(*[mx.ones((1, 1, 1, 8))] * 3),
            lambda: metal_flash_attention(mx.ones((1, 1, 2, 8)), *[mx.ones((1, 1, 1, 8))] * 2),
            lambda: metal_paged_attention(mx.ones((1, 1, 1, 8)), *pool, mx.array([0, 1]), mx.array([1])),
            lambda: metal_paged_attention(mx.ones((2, 1, 1, 8)), *pool, mx.array([0, 2]), mx.array([2])),
        ]
    )
    assert len(sources) == 12
    assert {name: problems(source, tmp_path) for name, source in sources.items()} == dict.fromkeys(sources, "")


@pytest.mark.parametrize(
    ("kernel", "old", "new"),
    [
        ("rms_norm", "threadgroup float partial[32];", "threadgroup float partial[32]; device float* p = partial;"),
        ("quantized_matmul", "threadgroup float* to = x_tile", "device float* to = x_tile"),
        ("flash_prefill", "const device T* at", "const threadgroup T* at"),
        ("add", "*(device unaligned_vec<T, 4>*)(out + i)", "*(threadgroup unaligned_vec<T, 4>*)(out + i)"),
    ],
)
def test_a_mixed_up_space_is_seen(sources: dict[str, str], tmp_path: Path, kernel: str, old: str, new: str) -> None:
    assert old in sources[kernel]
    assert "error:" in problems(sources[kernel].replace(old, new), tmp_path)
