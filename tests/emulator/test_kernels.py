"""A package's kernel files: read when first called, lazy, on streams, counted, and stubs told as tasks."""

from collections.abc import Callable
from pathlib import Path

import mlx.core as mx
import pytest

from course.emulator.errors import KernelError
from course.kernels import checked, dispatches, faulty, metal, metal_kernel
from course.stub import stub_of

DOUBLE = """// Doubles numbers.
template <typename T> T twice(T x) {
  return x + x;
}
// kernel body
uint i = thread_position_in_grid.x;
out[i] = twice(x[i]);
"""
Writer = Callable[[str], metal.MetalKernel]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Writer:
    """Writes `metal/double.metal` beside a package; returns its kernel."""
    folder = tmp_path / "extensions" / "metal"
    folder.mkdir(parents=True)
    monkeypatch.setattr(metal, "package_folder", lambda package: tmp_path / package)

    def write(text: str) -> metal.MetalKernel:
        (folder / "double.metal").write_text(text, encoding="utf-8")
        return metal_kernel("tiny_llm.kernels", "double", inputs=["x"], outputs=["out"])

    return write


def call(kernel: metal.MetalKernel, x: mx.array, **more: object) -> mx.array:
    return kernel(
        inputs=[x], grid=(x.size, 1, 1), threadgroup=(8, 1, 1), output_shapes=[x.shape], output_dtypes=[x.dtype], **more
    )[0]


def test_it_computes(write: Writer):
    x = mx.arange(20, dtype=mx.float32)
    assert call(write(DOUBLE), x).tolist() == (x * 2).tolist()
    assert call(write(DOUBLE), x.astype(mx.bfloat16)).tolist() == (x * 2).tolist()


def test_the_file_is_read_at_the_first_call(write: Writer):
    kernel = write("nonsense")
    write(DOUBLE)
    assert call(kernel, mx.ones(3)).tolist() == [2, 2, 2]


def test_the_graph_stays_lazy(write: Writer):
    kernel = write(DOUBLE.replace("out[i] =", "threadgroup float big[9000]; big[i] = x[i]; out[i] = big[i] +"))
    x = mx.ones(3)
    unused = call(kernel, x)
    assert call(write(DOUBLE), x + 1).tolist() == [4, 4, 4], "the failing launch has not run"
    with pytest.raises(RuntimeError):
        mx.eval(unused)


def test_streams_and_async_eval(write: Writer):
    kernel = write(DOUBLE)
    stream = mx.new_stream(mx.cpu)
    x = mx.ones(30)
    for _ in range(3):
        x = call(kernel, x, stream=stream)
    mx.async_eval(x)
    assert x.tolist() == [8.0] * 30
    with mx.stream(stream):
        assert call(kernel, mx.ones(3)).tolist() == [2, 2, 2]


def test_scalars_init_value_and_verbose(write: Writer, capsys: pytest.CaptureFixture[str]):
    kernel = write("// kernel body\nif (thread_position_in_grid.x == 1) { out[1] = x[0] + N; }")
    out = call(kernel, mx.ones(3), init_value=7, template=[("N", 4)], verbose=True)
    assert out.tolist() == [7, 5, 7]
    assert "custom_kernel_double" in capsys.readouterr().out


def test_it_takes_part_in_the_proof_of_kernel(write: Writer):
    kernel = write(DOUBLE)
    with dispatches() as counts, faulty("double", 1, 8.0):
        out = call(kernel, mx.ones(3))
        call(kernel, mx.ones(3))
    assert counts == {"double": 2}
    assert out.tolist() == [2, 10, 2]


def test_launches_are_plain_and_in_the_order_of_the_calls(write: Writer):
    kernel = write(DOUBLE)
    with checked() as run:
        first, second = call(kernel, mx.ones(20)), call(kernel, mx.ones(10))
        assert run.launches == []
        mx.eval(second)
        mx.eval(first)
    assert [(launch["kernel"], launch["threads"], launch["threadgroup"]) for launch in run.launches] == [
        ("double", (20, 1, 1), (8, 1, 1)),
        ("double", (10, 1, 1), (8, 1, 1)),
    ]
    assert run.findings() == []
    assert run.counters("double")["device_read_bytes"] == 30 * 4
    assert run.counters("double")["dispatches"] == 2
    assert run.counters("other") == {}


def test_nothing_is_recorded_outside(write: Writer):
    kernel = write(DOUBLE)
    with checked() as run:
        mx.eval(call(kernel, mx.ones(20)))
    mx.eval(call(kernel, mx.ones(20)))
    assert len(run.launches) == 1


def test_lines_are_the_files_own(write: Writer):
    with pytest.raises(KernelError, match=r"double\.metal:3: unknown name `y`"):
        call(write(DOUBLE.replace("return x + x", "return y")), mx.ones(3))
    with pytest.raises(KernelError, match=r"double\.metal:7: unknown name `z`"):
        call(write(DOUBLE.replace("x[i]", "x[z]")), mx.ones(3))
    with checked() as run:
        mx.eval(call(write(DOUBLE.replace("x[i]", "x[i + 1]")), mx.ones(20)))
    assert [(found["file"], found["line"]) for found in run.findings()] == [("double.metal", 7)]


def test_a_stub_is_a_task_to_do(write: Writer):
    text = "Week 2 Day 5 Task 1: add - see book/src/week2-05-metal.md#task-1"
    with pytest.raises(KernelError) as caught:
        call(write(f'// kernel body\n// begin task: add\n#error "{text}"\n// end task: add\n'), mx.ones(3))
    assert text in str(caught.value)
    stub = stub_of(caught.value)
    assert (stub.week, stub.day, stub.task) == (2, 5, 1)


@pytest.mark.parametrize("text", ["", "out[0] = 1;", "// kernel body\n// kernel body\n"])
def test_a_file_has_one_body(write: Writer, text: str):
    with pytest.raises(KernelError, match=r"double\.metal:1: \d lines `// kernel body`, must be one"):
        call(write(text), mx.ones(3))


@pytest.mark.parametrize("text", ['#line 7 "other.metal"\n', '  # 3 "other.metal"\n'])
def test_lines_stay_those_of_the_file(write: Writer, text: str):
    with pytest.raises(KernelError, match=r"double\.metal:1: `#line`"):
        call(write(text + DOUBLE), mx.ones(3))


def test_a_missing_file_is_told(write: Writer, tmp_path: Path):
    kernel = write(DOUBLE)
    kernel.path.unlink()
    with pytest.raises(KernelError, match="cannot read the kernel"):
        call(kernel, mx.ones(3))
