"""Proof of kernel: calls are counted, faults reach the result, and a library's open names are read."""

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from course.errors import CourseError
from course.kernels import dispatches, faulty, forbidden_symbols
from course.kernels.extension import Extension, extension
from course.kernels.proof import called

FLOATS = [mx.float32, mx.float16, mx.bfloat16]
WHOLE = [mx.uint32, mx.int8, mx.int64]


def test_calls_are_counted_by_name_in_every_counter_that_is_open():
    with dispatches() as outer:
        called("add", mx.zeros(1))
        with dispatches() as inner:
            called("add", mx.zeros(1))
            called("norm", [mx.zeros(1), None])
        called("add", mx.zeros(1))
    called("add", mx.zeros(1))
    assert outer == {"add": 3, "norm": 1}
    assert inner == {"add": 1, "norm": 1}


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE])
@pytest.mark.parametrize("index", [0, 4, -1])
def test_a_fault_changes_one_element_and_nothing_else(dtype: mx.Dtype, index: int):
    x = mx.arange(6).reshape(2, 3).astype(dtype)
    with faulty("add", index=index, delta=3):
        y = called("add", x)
    want = np.arange(6)
    want[index] += 3
    assert (y.dtype, y.shape) == (dtype, (2, 3))
    assert y.astype(mx.float32).reshape(-1).tolist() == want.tolist()


def test_faults_concern_their_kernel_and_their_time_only():
    x = mx.array([1.0, 2.0])
    with faulty("add"):
        assert called("norm", x) is x
        with faulty("add", index=1, delta=1.0), faulty("add", index=1, delta=1.0):
            assert called("add", x).tolist() == [9.0, 4.0]
        assert called("add", (x, "rest"))[0].tolist() == [9.0, 2.0]
        assert called("add", [x, x])[1] is x
    assert called("add", x) is x
    with faulty("add"):
        assert called("add", mx.array([True, False])).tolist() == [False, False]


def test_faults_are_lazy():
    with faulty("add", delta=2.0):
        y = mx.vmap(lambda x: called("add", x))(mx.ones((2, 3)))  # in which nothing can be evaluated
    assert y.tolist() == [[3.0, 1.0, 1.0]] * 2


def test_a_fault_that_cannot_be_made_is_an_error():
    with faulty("add", index=2), pytest.raises(IndexError, match="a fault at element 2 of add: its output has 2"):
        called("add", mx.zeros(2))
    with faulty("add"), pytest.raises(TypeError, match="add returned NoneType"):
        called("add", None)


def test_threads_are_counted_too():
    def work() -> None:
        for _ in range(200):
            called("add", None)

    with dispatches() as counts:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert counts == {"add": 800}


def test_a_library_that_is_not_built_or_does_not_load_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "tiny_llm"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tiny_llm"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(CourseError, match=r"library of tiny_llm is not built: `pdm run build-ext`"):
        _ = Extension("tiny_llm").twice
    (folder / "_ext.py").write_text("raise ImportError('undefined symbol: x')\n")
    with pytest.raises(CourseError, match=r"does not load \(undefined symbol: x\): `pdm run build-ext`"):
        _ = Extension("tiny_llm").twice
    (folder / "_ext.py").write_text("limit = 3\ndef twice(x): return 2 * x\n")
    library = Extension("tiny_llm")
    with dispatches() as counts:
        assert (library.twice(4), library.twice(x=5), library.limit) == (8, 10, 3)
    assert counts == {"twice": 2}
    with pytest.raises(AttributeError, match="library of tiny_llm has no thrice"):
        _ = library.thrice


def test_modules_of_a_package_share_its_library():
    assert extension("tiny_llm_ref.kernels.cpu") is extension("tiny_llm_ref")
    assert extension("tiny_llm") is not extension("tiny_llm_ref")


SOURCE = """
namespace mlx::core { struct array {}; array matmul(const array&, const array&); array add(const array&);
array operator*(const array&, float); array operator>>(const array&, const array&); void operator<<(int&, const array&);
struct QuantizedMatmul { QuantizedMatmul(); }; struct AddMM { AddMM(); }; namespace fast { array rope(const array&); } }
extern "C" void cblas_sgemm(int);
using namespace mlx::core;
void f() { array x; CALL; }
"""


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
@pytest.mark.parametrize(
    ("call", "names", "found"),
    [
        ("matmul(x, x)", ["matmul"], "mlx::core::matmul("),
        ("fast::rope(x)", ["fast"], "mlx::core::fast::rope("),
        ("fast::rope(x)", ["fast.rope"], "mlx::core::fast::rope("),
        ("QuantizedMatmul()", ["quantized_matmul"], "mlx::core::QuantizedMatmul::QuantizedMatmul("),
        ("AddMM()", ["addmm"], "mlx::core::AddMM::AddMM("),
        ("cblas_sgemm(1)", [], "cblas_sgemm"),
        ("add(x)", ["matmul", "fast", "array.add"], None),
        ("fast::rope(x)", ["rope", "fast.rms_norm"], None),
        ("x * 2.0f", ["multiply"], "mlx::core::operator*("),
        ("x >> x", ["right_shift"], "mlx::core::operator>>("),
        ("int i; i << x", ["multiply", "right_shift"], None),
    ],
)
def test_forbidden_symbols(tmp_path: Path, call: str, names: list[str], found: str | None):
    source, library = tmp_path / "x.cpp", tmp_path / "x.so"
    source.write_text(SOURCE.replace("CALL", call))
    flags = ["-std=c++20", "-shared", "-fPIC"] + (["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else [])
    subprocess.run(["c++", *flags, "-o", library, source], check=True, timeout=60)
    symbols = forbidden_symbols(library, names)
    assert len(symbols) == (found is not None)
    assert all(symbol.startswith(found) for symbol in symbols)


def test_a_file_that_is_no_library_is_told(tmp_path: Path):
    (tmp_path / "x.so").write_text("no library")
    with pytest.raises(CourseError, match="nm cannot read the library"):
        forbidden_symbols(tmp_path / "x.so", [])
