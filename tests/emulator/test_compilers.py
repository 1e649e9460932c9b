"""Kernels compiled by clang++ behave as those by g++. Skipped where no clang++ of version 15 or later is installed."""

import shutil

import mlx.core as mx
import numpy as np
import pytest
from emulator.bugs import BUGS, MARK
from emulator.emulate import THREAD, clean, run

from course.emulator import compiler

CLANG = next((name for name in (*(f"clang++-{n}" for n in range(25, 14, -1)), "clang++") if shutil.which(name)), None)
SOME_BUGS = [
    "race_without_barrier",
    "read_one_beyond",
    "divergent_barrier",
    "local_array_out_of_bounds",
    "wild_pointer",
]
SOME_BUGS += ["part_of_a_simdgroup", "division_by_zero", "uninitialised_threadgroup_memory", "output_partly_written"]


def _too_old() -> bool:
    digits = [part.split(".")[0] for part in compiler.version(CLANG).split() if part[0].isdigit()]
    return not digits or int(digits[0]) < 15


pytestmark = pytest.mark.skipif(CLANG is None or _too_old(), reason="no clang++ of version 15 or later")


@pytest.fixture(autouse=True)
def clang(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CXX", CLANG)
    compiler.compiler.cache_clear()
    yield
    monkeypatch.undo()
    compiler.compiler.cache_clear()


def test_values():
    x = np.random.default_rng(0).standard_normal(128).astype(np.float32)
    body = f"""{THREAD}
    half4 h = half4(x[t], simd_sum(x[t]), 2, 3);
    bfloat b = bfloat(x[t]);
    h.xy += h.yx;
    simdgroup_float8x8 m;
    simdgroup_load(m, x);
    simdgroup_multiply(m, m, m);
    simdgroup_store(m, out + 64);
    out[t] = float(h.x) + float(b) - float(b);
    """
    got = clean(body, {"x": mx.array(x)}, ((128,), mx.float32), threads=32, threadgroup=32, init_value=0)
    np.testing.assert_allclose(got[:32], x[:32] + x[:32].sum(), rtol=5e-3, atol=5e-3)
    square = x[:64].reshape(8, 8)
    np.testing.assert_allclose(got[64:], (square @ square).ravel(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", SOME_BUGS)
def test_bugs_and_their_twins(name: str):
    bug = BUGS[name]
    x = {"x": mx.array(np.random.default_rng(0).standard_normal(128).astype(np.float32))}
    declare = "uint t = thread_index_in_threadgroup, i = thread_position_in_grid.x;\n"
    options = {"threads": bug.threads, "init_value": bug.init_value, "atomic": bug.atomic}
    output = ((bug.output,), getattr(mx, bug.dtype))
    _, found, _ = run(declare + bug.wrong, x, output, **options)
    assert found
    assert {finding["kind"] for finding in found} <= set(bug.kinds.split())
    if MARK in bug.wrong:
        assert MARK in (declare + bug.wrong).splitlines()[found[0]["line"] - 1]
    _, silent, _ = run(declare + bug.right, x, output, **options)
    assert not silent, silent[0]["message"]
