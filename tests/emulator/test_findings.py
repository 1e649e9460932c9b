"""What the checked build finds, told as sentences with kind, place, threads, memory and the fix."""

import re

import mlx.core as mx
import pytest

from course.emulator.metal_kernel import metal_kernel
from course.kernels import checked

T = "uint t = thread_index_in_threadgroup;"

# name -> (body, kind of the first finding, its line, words of its message)
BUGS = {
    "race": (
        f"threadgroup float s[64];\n{T}\ns[t] = x[t];\nout[t] = s[63 - t];",
        "race_read_write",
        3,
        "data race on element 32 of threadgroup variable `s`: thread 32 of threadgroup 0 writes what thread 31 of "
        "threadgroup 0 read at bug.metal:4 with nothing to order them: put "
        "threadgroup_barrier(mem_flags::mem_threadgroup) between the two",
    ),
    "read_out_of_bounds": (
        f"{T}\nout[t] = x[t + 1];",
        "out_of_bounds_read",
        2,
        "thread 63 of threadgroup 0 reads element 64 of buffer `x`, which has 64 elements of 4 bytes",
    ),
    "write_out_of_bounds": (
        f"{T}\n\nout[t + 1] = x[t];",
        "out_of_bounds_write",
        3,
        "thread 63 of threadgroup 0 writes element 64 of buffer `out`, which has 64 elements of 4 bytes",
    ),
    "uninitialised": (
        f"threadgroup float s[64];\n{T}\nthreadgroup_barrier(mem_flags::mem_threadgroup);\nout[t] = s[t];",
        "uninitialized_threadgroup_read",
        4,
        "reads element 0 of threadgroup variable `s`, which nobody has written",
    ),
    "not_written": (
        f"{T}\nif (t < 50) {{ out[t] = 1; }}",
        "output_not_written",
        0,
        "bug.metal: 14 elements of output buffer `out`, which has 64 elements of 4 bytes, were never written, first "
        "element 50: does the grid cover every element?",
    ),
    "write_to_input": (
        f"{T}\ndevice float* p = (device float*)x;\np[t] = 1;\nout[t] = 2;",
        "write_to_input",
        3,
        "writes to element 0 of buffer `x`, an input",
    ),
    "threadgroup_memory": (
        f"threadgroup float big[9000];\n{T}\nbig[t] = 1;\nout[t] = big[t];",
        "threadgroup_memory",
        1,
        "36000 bytes of threadgroup memory, and there are 32768",
    ),
    "array_index": (
        f"{T}\nfloat a[4] = {{0, 1, 2, 3}};\nout[t] = a[t];",
        "array_index",
        3,
        "thread 4 of threadgroup 0 uses index 4 of an array",
    ),
    "division": (f"{T}\nout[t] = 10 / (int(t) - 3);", "division_by_zero", 2, "thread 3 of threadgroup 0 divides"),
    "barrier_in_a_branch": (
        f"{T}\nif (t < 32) {{\n  threadgroup_barrier(mem_flags::mem_threadgroup);\n}}\nout[t] = 1;",
        "barrier_after_return",
        3,
        "32 of 64 threads returned before it",
    ),
    "two_barriers": (
        f"{T}\nif (t < 32) {{\n  threadgroup_barrier(mem_flags::mem_threadgroup);\n}} else {{\n"
        "  threadgroup_barrier(mem_flags::mem_threadgroup);\n}\nout[t] = 1;",
        "divergent_barrier",
        3,
        "waits at a barrier that other threads of its threadgroup do not reach",
    ),
    "partial_simdgroup": (
        f"{T}\nfloat v = 1;\nif (t % 32 < 8) {{\n  v = simd_sum(v);\n}}\nout[t] = v;",
        "partial_simdgroup",
        4,
        "only a part of its simdgroup reaches",
    ),
}


def run_bug(body: str, threadgroup: tuple[int, int, int] = (64, 1, 1)) -> list[dict[str, str | int | bool]]:
    kernel = metal_kernel("bug", ["x"], ["out"], f'#line 1 "bug.metal"\n{body}')
    with checked() as run:
        out = kernel(
            inputs=[mx.ones(64)],
            grid=(64 // threadgroup[1], threadgroup[1], 1),
            threadgroup=threadgroup,
            output_shapes=[(64,)],
            output_dtypes=[mx.float32],
        )
        mx.eval(out)
    return run.findings()


@pytest.mark.parametrize("name", BUGS)
def test_a_finding_names_place_threads_and_fix(name: str):
    body, kind, line, words = BUGS[name]
    first = run_bug(body)[0]
    assert (first["kind"], first["file"], first["line"]) == (kind, "bug.metal", line), first["message"]
    assert words in first["message"]


def test_a_message_ends_with_the_text_of_its_line():
    message = run_bug(f"{T}\nout[t] = x[t + 1];")[0]["message"]
    assert message.startswith("bug.metal:2: ")
    assert message.endswith("\n    out[t] = x[t + 1];")


def test_threads_of_two_dimensions_are_told_by_their_position():
    message = run_bug(f"{T}\nout[t] = x[t + 1];", (8, 8, 1))[0]["message"]
    assert "thread 63 (7, 7, 0) of threadgroup 0" in message


def test_a_correct_kernel_has_no_findings():
    body = f"threadgroup float s[64];\n{T}\ns[t] = x[t];\nthreadgroup_barrier(mem_flags::mem_threadgroup);\n"
    assert run_bug(body + "out[t] = s[63 - t];") == []


def test_every_kind_of_the_runtime_has_its_sentence():
    from course.emulator.findings import _SENTENCES
    from course.emulator.runtime import FOLDER

    source = (FOLDER / "native" / "findings.cpp").read_text(encoding="utf-8")
    kinds = set(re.findall(r'"([a-z]+(?:_[a-z]+)+)"', source))
    assert kinds
    assert kinds <= _SENTENCES.keys()


def test_the_fast_build_raises_when_a_kernel_cannot_go_on():
    kernel = metal_kernel("loop", ["x"], ["out"], "threadgroup float s[9000]; s[0] = x[0]; out[0] = s[0];")
    arguments = {"grid": (1, 1, 1), "threadgroup": (1, 1, 1), "output_shapes": [(1,)], "output_dtypes": [mx.float32]}
    with pytest.raises(RuntimeError, match="threadgroup"):
        mx.eval(kernel(inputs=[mx.ones(8)], **arguments))
