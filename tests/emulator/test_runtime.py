"""Launches: laziness, streams, strides, limits, what a stopped launch leaves, counters, traces."""

import time

import mlx.core as mx
import numpy as np
import pytest
from emulator.emulate import THREAD, run

from course.emulator import metal_kernel as front
from course.emulator.metal_kernel import metal_kernel
from course.emulator.runtime import TRACE_DTYPE, Limits, take_records
from course.kernels import checked

ENDLESS = {
    "without_memory": "float v = t; while (v < 10) v = sin(v) * 0.5f; out[i] = v;",
    "empty": "volatile uint v = t; while (v < 1000) {} out[i] = v;",
    "on_memory": "while (x[t] < 1e9f) { out[i] = x[t]; }",
    "at_a_barrier": "do { threadgroup_barrier(mem_flags::mem_none); } while (x[0] < 9); out[i] = 1;",
    "in_a_simd_function": "float v = 1; while (v < 100) v = simd_max(v); out[i] = v;",
}


def _limited(monkeypatch: pytest.MonkeyPatch, limits: Limits) -> None:
    launch = front.launch
    monkeypatch.setattr(front, "launch", lambda *args, **options: launch(*args, **(options | {"limits": limits})))


def _call(body: str, x: mx.array, size: int = 64, dtype: mx.Dtype = mx.float32) -> mx.array:
    kernel = metal_kernel("runtime", ["x"], ["out"], THREAD + body)
    return kernel(
        inputs=[x], output_shapes=[(size,)], output_dtypes=[dtype], grid=(size, 1, 1), threadgroup=(64, 1, 1)
    )[0]


@pytest.mark.parametrize("name", ENDLESS)
def test_endless_loop_ends_in_a_checked_run(name: str, monkeypatch: pytest.MonkeyPatch):
    _limited(monkeypatch, Limits(steps=200_000, seconds=0.3))
    out, findings, _ = run(THREAD + ENDLESS[name], {"x": mx.zeros(64)}, ((64,), mx.float32))
    assert [f["kind"] for f in findings if f["fatal"]] in (["step_limit"], ["time_limit"])
    assert all(f["line"] == 3 for f in findings if f["fatal"])
    assert np.isnan(np.array(out)).all()


@pytest.mark.parametrize("name", ENDLESS)
def test_endless_loop_ends_in_a_fast_run(name: str, monkeypatch: pytest.MonkeyPatch):
    _limited(monkeypatch, Limits(steps=200_000, seconds=0.3))
    with pytest.raises(RuntimeError, match="_limit"):
        mx.eval(_call(ENDLESS[name], mx.zeros(64)))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("((device float*)8)[t] = 1;", "null_pointer"),
        ("((device float*)0x123456789000ul)[t] = 1;", "wild_pointer"),
        ("float a[50000]; for (int k = 0; k < 50000; k++) a[k] = x[t] + k; out[i] = a[t * 7];", "stack_overflow"),
        ("threadgroup float s[9000]; s[t] = 1; out[i] = s[t];", "threadgroup_memory"),
        ("if (t < 7) threadgroup_barrier(mem_flags::mem_none); out[i] = 1;", "barrier_after_return"),
    ],
)
def test_fatal_bug_in_a_fast_run_raises_and_python_lives(body: str, words: str):
    with pytest.raises(RuntimeError, match=words):
        mx.eval(_call(body, mx.zeros(64)))
    np.testing.assert_array_equal(np.array(_call("out[i] = 2;", mx.zeros(64))), np.full(64, 2))


def test_python_own_faults_are_not_ours():
    """After a launch the handlers are what they were before."""
    import signal

    before = signal.getsignal(signal.SIGSEGV), signal.getsignal(signal.SIGURG)
    mx.eval(_call("out[i] = 1;", mx.zeros(64)))
    assert (signal.getsignal(signal.SIGSEGV), signal.getsignal(signal.SIGURG)) == before


def test_nothing_runs_before_it_is_needed():
    with checked() as checking:
        out = _call("out[i] = x[t] + 1;", mx.zeros(64))
        assert checking.launches == []
        again = _call("out[i] = x[t] * 2;", out)
        mx.eval(again)
        assert len(checking.launches) == 2
    assert np.array(again).tolist() == [2.0] * 64


def test_async_eval_and_another_stream():
    stream = mx.new_stream(mx.cpu)
    kernel = metal_kernel("streams", ["x"], ["out"], THREAD + "out[i] = x[i] + 1;")
    shape = {"output_shapes": [(640,)], "output_dtypes": [mx.float32], "grid": (640, 1, 1), "threadgroup": (64, 1, 1)}
    x = mx.zeros(640)
    for k in range(20):
        (x,) = kernel(inputs=[x], stream=stream if k % 2 else mx.cpu, **shape)
        mx.async_eval(x)
    assert np.array(x).tolist() == [20.0] * 640


def test_a_strided_input_by_its_strides():
    x = mx.array(np.arange(60, dtype=np.float32).reshape(6, 10))
    view = x[1:5:2, 9:1:-2].T
    body = "uint e = thread_position_in_grid.x; out[e] = x[elem_to_loc(int64_t(e), x_shape, x_strides, x_ndim)];"
    shape = {"output_shapes": [view.shape], "output_dtypes": [mx.float32], "grid": (view.size, 1, 1)}
    for contiguous in (True, False):
        kernel = metal_kernel("strided", ["x"], ["out"], body, ensure_row_contiguous=contiguous)
        with checked() as checking:
            (out,) = kernel(inputs=[view], threadgroup=(4, 1, 1), **shape)
            np.testing.assert_array_equal(np.array(out), np.array(view))
        assert not checking.findings()


def test_a_view_ends_where_its_elements_end():
    """Elements of the same array beyond the view are out of bounds."""
    whole = mx.array(np.arange(256, dtype=np.float32))
    kernel = metal_kernel("view", ["x"], ["out"], THREAD + "out[i] = x[i + 1];", ensure_row_contiguous=False)
    shape = {"output_shapes": [(64,)], "output_dtypes": [mx.float32], "grid": (64, 1, 1), "threadgroup": (64, 1, 1)}
    with checked() as checking:
        mx.eval(kernel(inputs=[whole[64:128]], **shape))
    assert [finding["kind"] for finding in checking.findings()] == ["out_of_bounds_read"]


def test_scalars_empty_arrays_and_initial_values():
    kernel = metal_kernel("scalar", ["x", "n", "none"], ["out"], THREAD + "if (i < n) out[i] += x + none_shape[0];")
    (out,) = kernel(
        inputs=[0.5, mx.array(3, mx.uint32), mx.zeros((0, 4))],
        output_shapes=[(5,)],
        output_dtypes=[mx.float32],
        grid=(5, 1, 1),
        threadgroup=(5, 1, 1),
        init_value=2,
    )
    assert np.array(out).tolist() == [2.5, 2.5, 2.5, 2, 2]


def test_order_of_threads_shows_what_depends_on_it():
    body = (
        "threadgroup float last[1];\nlast[0] = t;\nthreadgroup_barrier(mem_flags::mem_threadgroup);\nout[i] = last[0];"
    )
    seen = set()
    launch = front.launch
    for order in (0, -1, 1, 2, 3):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(front, "launch", lambda *a, _order=order, **o: launch(*a, **(o | {"order": _order})))
            seen.add(float(_call(body, mx.zeros(64))[0]))
    assert len(seen) > 2, "the orders are all alike"


def test_lines_and_bank_conflicts_of_known_patterns():
    x = mx.array(np.arange(4096, dtype=np.float32))
    patterns = {  # index of the element -> 128-byte lines that a simdgroup's read touches
        "i": 1,
        "i + 1": 2,
        "i * 2": 2,
        "i * 32": 32,
        "0": 1,
        "i / 2": 1,
    }
    for index, lines in patterns.items():
        body = f"{THREAD}out[i] = x[{index}];"
        _, findings, counters = run(body, {"x": x}, ((32,), mx.float32), threads=32, threadgroup=32)
        assert not findings
        assert (counters["device_read_requests"], counters["device_read_lines"]) == (1, lines), index
        assert (counters["device_read_bytes"], counters["device_write_bytes"]) == (128, 128)
    for pad, conflicts in ((0, 31), (1, 0)):
        body = f"""{THREAD}threadgroup float s[32][{32 + pad}];
        s[t][0] = x[i];
        simdgroup_barrier(mem_flags::mem_threadgroup);
        out[i] = s[31 - t][0];"""
        _, _, counters = run(body, {"x": x}, ((32,), mx.float32), threads=32, threadgroup=32)
        assert counters["bank_conflicts"] == 2 * conflicts, pad


def test_a_vector_is_one_request():
    x = mx.array(np.arange(128, dtype=np.float32))
    body = f"{THREAD}float4 v = ((const device float4*)x)[i]; out[i] = v.x + v.y * v.z - v.w;"
    _, _, counters = run(body, {"x": x}, ((32,), mx.float32), threads=32, threadgroup=32)
    assert (counters["device_read_requests"], counters["device_read_lines"]) == (1, 4)


def test_counters_repeat_exactly():
    x = mx.array(np.random.default_rng(0).standard_normal(4096).astype(np.float32))
    body = f"{THREAD}threadgroup float s[64]; s[t] = simd_sum(x[i * 7 % 4096]);\n"
    body += "threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = s[63 - t];"
    first, second = (run(body, {"x": x}, ((4096,), mx.float32), threads=4096)[2] for _ in range(2))
    assert first == second


def test_trace_of_one_threadgroup():
    kernel = metal_kernel("trace", ["x"], ["out"], THREAD + "out[i] = x[127 - i];")
    with checked(trace=1) as checking:
        mx.eval(
            kernel(
                inputs=[mx.zeros(128)],
                output_shapes=[(128,)],
                output_dtypes=[mx.float32],
                grid=(128, 1, 1),
                threadgroup=(64, 1, 1),
            )
        )
    ((_, record),) = checking.records()
    trace = np.frombuffer(record.trace, np.dtype(TRACE_DTYPE))
    reads, writes = trace[trace["write"] == 0], trace[trace["write"] == 1]
    np.testing.assert_array_equal(reads["offset"], 4 * (63 - np.arange(64)))
    np.testing.assert_array_equal(writes["offset"], 4 * (64 + np.arange(64)))
    assert set(trace["size"]) == {4}


def test_a_record_is_handed_out_once():
    with checked() as checking:
        mx.eval(_call("out[i] = 1;", mx.zeros(64)))
        assert len(checking.launches) == 1
    assert take_records() == []


def test_a_large_grid_is_quick():
    started = time.process_time()
    _, findings, _ = run(THREAD + "out[i] = 1;", {}, ((1 << 18,), mx.float32), threads=1 << 18, threadgroup=256)
    assert not findings
    assert time.process_time() - started < 5
