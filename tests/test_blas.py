"""The BLAS route: same results with and without it, MLX really uses it, and it stays away where it cannot work.

Each check runs in a process of its own, because the route is decided once, before mlx.core is imported.
"""

import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from course import blas

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the route exists on Linux only")

PRODUCTS = """
import sys
import numpy as np
from course import blas
blas.activate()
import mlx.core as mx

rng = np.random.default_rng(0)
def array(*shape):
    return mx.array(rng.normal(size=shape).astype(np.float32))

out = {}
for m, k, n in [(1, 1, 1), (1, 7, 5), (3, 5, 7), (17, 31, 13), (64, 64, 64), (129, 257, 65), (1, 1024, 3), (3, 1, 5)]:
    out[f"plain {m} {k} {n}"] = array(m, k) @ array(k, n)
    out[f"right {m} {k} {n}"] = array(m, k) @ array(n, k).T
    out[f"left {m} {k} {n}"] = array(k, m).T @ array(k, n)
    out[f"both {m} {k} {n}"] = array(k, m).T @ array(n, k).T
    out[f"addmm {m} {k} {n}"] = mx.addmm(array(m, n), array(m, k), array(k, n), alpha=0.5, beta=-2.0)
out["batched"] = array(2, 3, 5, 7) @ array(2, 3, 7, 11)
out["broadcast"] = array(2, 3, 5, 7) @ array(7, 11)
out["broadcast left"] = array(5, 7) @ array(4, 7, 3)
out["swapped axes"] = mx.swapaxes(array(2, 5, 3, 8), 1, 2) @ mx.swapaxes(array(2, 3, 6, 8), -1, -2)
out["slice"] = array(40, 50)[3:20, 5:30] @ array(60, 70)[::2][:25, 7:9]
out["empty rows"] = array(0, 4) @ array(4, 3)
out["empty columns"] = array(2, 4) @ array(4, 0)
out["empty sum"] = array(2, 0) @ array(0, 3)
out["nan stays in its row"] = mx.array([[1.0, float("nan")], [1.0, 2.0]]) @ array(2, 3)
out["infinity"] = mx.array([[1.0, float("inf")]]) @ mx.ones((2, 3))
with mx.stream(mx.cpu):
    left, right = (mx.array(rng.normal(size=size), dtype=mx.float64) for size in [(9, 33), (33, 6)])
    out["float64"] = left @ right
    out["float64 addmm"] = mx.addmm(left, left, mx.eye(33, dtype=mx.float64), alpha=2.0, beta=3.0)
values = {name: np.array(x) for name, x in out.items()}
np.savez(sys.argv[1], calls=blas.calls(), active=blas.status().active, **values)
"""


def python(program: str, *arguments: str, cache: Path | None = None, **environment: str) -> subprocess.CompletedProcess:
    settings = {k: v for k, v in os.environ.items() if k not in (blas.SWITCH, "CC")} | environment
    if cache is not None:
        settings["XDG_CACHE_HOME"] = str(cache)
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=settings,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


def status_after(program: str, cache: Path, **environment: str) -> dict:
    report = "import json; print(json.dumps([blas.status().active, blas.status().reason, blas.calls()]))"
    done = python(f"from course import blas\n{program}\n{report}", cache=cache, **environment)
    assert done.stderr == ""
    return dict(zip(("active", "reason", "calls"), json.loads(done.stdout), strict=True))


@linux_only
@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_every_product_is_the_same_with_and_without_the_route(tmp_path):
    results = {}
    for switch in ("on", "off"):
        python(PRODUCTS, str(tmp_path / f"{switch}.npz"), cache=tmp_path, **{blas.SWITCH: switch})
        results[switch] = np.load(tmp_path / f"{switch}.npz")
    on, off = results["on"], results["off"]
    assert on["active"]
    assert on["calls"] > 40
    assert not off["active"]
    assert off["calls"] == 0
    assert set(on.files) == set(off.files)
    for name in set(on.files) - {"active", "calls"}:
        assert on[name].dtype == off[name].dtype, name
        scale = np.abs(off[name][np.isfinite(off[name])]).max(initial=1.0)
        limit = scale * (1e-12 if on[name].dtype == np.float64 else 1e-5)
        np.testing.assert_allclose(on[name], off[name], rtol=0, atol=limit, err_msg=name)


@linux_only
def test_c_interface_takes_column_major_leading_dimensions_alpha_beta_and_zero_sizes(tmp_path):
    """Straight through the symbol that MLX calls: 32-bit integers go in, a NaN in C must not survive beta = 0."""
    program = """
import ctypes, os
from course import blas
assert blas.activate().active, blas.status()
import numpy as np
gemm = ctypes.CDLL(None).cblas_sgemm
gemm.restype = None
i, f, p = ctypes.c_int, ctypes.c_float, ctypes.c_void_p
gemm.argtypes = [i, i, i, i, i, i, f, p, i, p, i, f, p, i]
rng = np.random.default_rng(1)
row, column, plain, transposed = 101, 102, 111, 112
a, b = (rng.normal(size=(8, 9)).astype(np.float32) for _ in range(2))
for alpha, beta in [(1.0, 0.0), (-0.5, 2.0), (0.0, 1.0), (0.0, 0.0)]:
    start = rng.normal(size=(6, 10)).astype(np.float32)
    if beta == 0.0:
        start[:] = np.nan
    c = start.copy()
    gemm(row, plain, transposed, 3, 4, 5, alpha, a.ctypes.data, 9, b.ctypes.data, 9, beta, c.ctypes.data, 10)
    want = alpha * (a[:3, :5] @ b[:4, :5].T) + (beta * start[:3, :4] if beta else 0.0)
    np.testing.assert_allclose(c[:3, :4], want, atol=1e-5)
    np.testing.assert_array_equal(c[3:], start[3:])
    np.testing.assert_array_equal(c[:, 4:], start[:, 4:])
    d = np.zeros((10, 6), np.float32)
    gemm(column, transposed, plain, 4, 3, 5, alpha, b.ctypes.data, 9, a.ctypes.data, 9, 0.0, d.ctypes.data, 6)
    np.testing.assert_allclose(d[:3, :4], alpha * (a[:3, :5] @ b[:4, :5].T), atol=1e-5)
c = np.full((2, 2), 7.0, np.float32)
gemm(row, plain, plain, 0, 2, 2, 1.0, a.ctypes.data, 2, b.ctypes.data, 2, 0.0, c.ctypes.data, 2)
assert (c == 7.0).all()
gemm(row, plain, plain, 2, 2, 0, 1.0, a.ctypes.data, 1, b.ctypes.data, 2, 0.5, c.ctypes.data, 2)
assert (c == 3.5).all(), c
big = 2**31 - 1  # the largest stride a 32-bit caller can name: one row, so nothing beyond it is read
gemm(row, plain, plain, 1, 1, 1, 2.0, a.ctypes.data, big, b.ctypes.data, big, 0.0, c.ctypes.data, big)
assert np.isclose(c[0, 0], 2 * a[0, 0] * b[0, 0])
"""
    python(program, cache=tmp_path)


@linux_only
def test_route_is_inactive_when_mlx_came_first(tmp_path):
    got = status_after("import mlx.core\nblas.activate()", tmp_path)
    assert not got["active"]
    assert "mlx.core was imported first" in got["reason"]


@linux_only
def test_route_can_be_switched_off(tmp_path):
    got = status_after("blas.activate()", tmp_path, **{blas.SWITCH: "off"})
    assert not got["active"]
    assert f"{blas.SWITCH}=off" in got["reason"]
    assert list(tmp_path.iterdir()) == []


@linux_only
@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"PATH": "/nowhere"}, "no C compiler"),
        ({"CC": "false"}, "false failed"),
        ({"CC": "/no/such/cc"}, "No such file"),
    ],
)
def test_missing_or_broken_compiler_leaves_mlx_as_it_is(tmp_path, setting, reason):
    multiply = "import mlx.core as mx\nassert (mx.eye(2) @ mx.eye(2)).sum().item() == 2"
    got = status_after(f"blas.activate()\n{multiply}", tmp_path, **setting)
    assert not got["active"]
    assert reason in got["reason"]
    assert got["calls"] == 0


@linux_only
def test_unwritable_cache_leaves_mlx_as_it_is(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    got = status_after("blas.activate()", blocked)
    assert not got["active"]
    assert "file" in got["reason"]


@linux_only
def test_numpy_without_openblas_and_other_systems_leave_mlx_as_it_is(tmp_path):
    package = tmp_path / "numpy" / "__init__.py"
    package.parent.mkdir()
    package.write_text("")
    (tmp_path / "numpy.libs").mkdir()
    find = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); blas.activate()"
    assert "no OpenBLAS" in status_after(find, tmp_path / "cache")["reason"]
    (tmp_path / "numpy.libs" / "libscipy_openblas64_-1.so").write_text("not a library")
    assert "libscipy_openblas64_-1.so" in status_after(find, tmp_path / "cache")["reason"]
    on_mac = status_after("import sys; sys.platform = 'darwin'; blas.activate()", tmp_path)
    assert "not needed on darwin" in on_mac["reason"]


@linux_only
def test_processes_that_build_at_once_share_one_library(tmp_path):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: status_after("blas.activate()", tmp_path), range(4)))
    assert all(status["active"] for status in found)
    assert len(list((tmp_path / "tiny-llm").iterdir())) == 1


@linux_only
def test_activation_is_cheap_and_imports_neither_numpy_nor_mlx(tmp_path):
    program = """
import sys, time
from course import blas
start = time.process_time()
blas.activate()
print(time.process_time() - start, any(name in sys.modules for name in ("numpy", "mlx", "subprocess")))
"""
    python(program, cache=tmp_path)
    readings = [python(program, cache=tmp_path).stdout.split() for _ in range(3)]
    assert all(loaded == "False" for _, loaded in readings)
    assert min(float(seconds) for seconds, _ in readings) < 0.03
