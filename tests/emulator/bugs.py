"""Kernels with one bug each, and the same kernels mended."""

from dataclasses import dataclass

BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"
DEVICE_BARRIER = "threadgroup_barrier(mem_flags::mem_device);"
MARK = "// here"


@dataclass(frozen=True)
class Bug:
    """`wrong` is found as one of `kinds` at a line with MARK; `right` is the same kernel, mended."""

    kinds: str
    wrong: str
    right: str
    threads: int = 128
    output: int = 128
    init_value: float | None = None
    atomic: bool = False
    dtype: str = "float32"


def _swap(kinds: str, text: str, wrong: str, right: str, **options: object) -> Bug:
    """A bug and its twin that differ where `text` says @@."""
    return Bug(kinds, text.replace("@@", wrong), text.replace("@@", right), **options)


EXCHANGE = f"threadgroup float s[64];\ns[t] = x[i]; {MARK}\n@@\nout[i] = s[63 - t]; {MARK}"
NEIGHBOURS = f"threadgroup float s[64];\ns[t] = x[i]; {MARK}\n@@\nout[i] = s[t ^ 1]; {MARK}"
REDUCE = f"""threadgroup float part[2];
float v = simd_sum(x[i]);
if (t % 32 == 0) part[t / 32] = v; {MARK}
{BARRIER}
float sum = part[0] + part[1]; {MARK}
@@
v = simd_max(x[i]);
if (t % 32 == 0) part[t / 32] = v; {MARK}
{BARRIER}
out[i] = sum + max(part[0], part[1]);"""
THROUGH_DEVICE = f"out[i] = x[i]; {MARK}\n@@\nfloat v = out[i ^ 63]; {MARK}\n{DEVICE_BARRIER}\nout[i] = v;"

WRITE_THROUGH_P = f"p[i] = t; {MARK}\nif (p != out) out[i] = 0;"
ANY_RACE = "race_write_write race_write_read race_read_write"

BUGS = {
    "race_without_barrier": _swap(
        "race_write_read race_read_write uninitialized_threadgroup_read", EXCHANGE, "", BARRIER
    ),
    "race_wrong_flag": _swap("race_write_read race_read_write", EXCHANGE, DEVICE_BARRIER, BARRIER),
    "race_no_flag": _swap("race_write_read", EXCHANGE, "threadgroup_barrier(mem_flags::mem_none);", BARRIER),
    "race_simdgroup_barrier_is_not_enough": _swap(
        "race_write_read race_read_write uninitialized_threadgroup_read",
        EXCHANGE,
        "simdgroup_barrier(mem_flags::mem_threadgroup);",
        BARRIER,
    ),
    "race_within_a_simdgroup": _swap(
        "race_write_read race_read_write uninitialized_threadgroup_read",
        NEIGHBOURS,
        "",
        "simdgroup_barrier(mem_flags::mem_threadgroup);",
    ),
    "race_a_simd_function_orders_no_memory": _swap(
        "race_write_read",
        NEIGHBOURS,
        "simd_sum(1.0f);",
        "simdgroup_barrier(mem_flags::mem_threadgroup);",
    ),
    "race_second_use_of_shared_memory": _swap("race_read_write race_write_read", REDUCE, "", BARRIER),
    "race_through_device_memory": _swap(
        "race_write_read race_read_write uninitialized_device_read", THROUGH_DEVICE, BARRIER, DEVICE_BARRIER
    ),
    "race_between_threadgroups": _swap(
        "race_write_write output_not_written",
        f"out[@@] = t; {MARK}",
        "t + 32 * threadgroup_position_in_grid.x",
        "i",
        output=128,
    ),
    "race_in_a_loop": _swap(
        "race_read_write race_write_read",
        f"""threadgroup float s[64];
float sum = 0;
for (int k = 0; k < 3; k++) {{
  s[t] = x[i] * k; {MARK}
  {BARRIER}
  sum += s[63 - t]; {MARK}
  @@
}}
out[i] = sum;""",
        "",
        BARRIER,
    ),
    "race_neighbouring_halves": Bug(
        "race_write_write",
        f"out[i / 2 * 2] = t; {MARK}\nout[i / 2 * 2 + 1] = t; {MARK}",
        "out[i] = t;",
        dtype="float16",
    ),
    "race_with_an_atomic": Bug(
        ANY_RACE,
        f"""atomic_fetch_add_explicit(&out[0], 1, memory_order_relaxed); {MARK}
{BARRIER}
int seen = *(device int*)&out[0]; {MARK}
atomic_fetch_max_explicit(&out[1], seen, memory_order_relaxed);""",
        """atomic_fetch_add_explicit(&out[0], 1, memory_order_relaxed);
int seen = atomic_load_explicit(&out[0], memory_order_relaxed);
atomic_fetch_max_explicit(&out[1], seen, memory_order_relaxed);""",
        output=2,
        init_value=0,
        atomic=True,
        dtype="int32",
    ),
    "race_lost_updates": Bug(
        ANY_RACE,
        f"device int* plain = (device int*)out;\nplain[0] = plain[0] + 1; {MARK}",
        "atomic_fetch_add_explicit(&out[0], 1, memory_order_relaxed);",
        output=1,
        init_value=0,
        atomic=True,
        dtype="int32",
    ),
    "read_one_beyond": _swap("out_of_bounds_read", f"out[i] = x[@@]; {MARK}", "i + 1", "(i + 1) % 128"),
    "read_before": _swap("out_of_bounds_read", f"out[i] = x[@@]; {MARK}", "int(i) - 1", "max(int(i) - 1, 0)"),
    "read_far_away": _swap("out_of_bounds_read", f"out[i] = x[@@]; {MARK}", "i * 4096", "i * 4096 % 128"),
    "write_one_beyond": _swap("out_of_bounds_write output_not_written", f"out[i + @@] = x[i]; {MARK}", "1", "0"),
    "no_check_at_the_edge": _swap(
        "out_of_bounds_write out_of_bounds_read", f"@@ out[i] = x[i]; {MARK}", "", "if (i < 100)", output=100
    ),
    "threadgroup_array_out_of_bounds": _swap(
        "array_index",
        f"threadgroup float s[64];\ns[t] = x[i];\n{BARRIER}\nout[i] = s[@@]; {MARK}",
        "t + 1",
        "(t + 1) % 64",
    ),
    "threadgroup_pointer_out_of_bounds": _swap(
        "out_of_bounds_read",
        f"threadgroup float s[64];\nthreadgroup float* p = s;\np[t] = x[i];\n{BARRIER}\nout[i] = p[@@]; {MARK}",
        "t + 1",
        "(t + 1) % 64",
    ),
    "local_array_out_of_bounds": _swap(
        "array_index", f"float a[4] = {{1, 2, 3, 4}};\nout[i] = a[@@]; {MARK}", "t", "t % 4"
    ),
    "uninitialised_threadgroup_memory": _swap(
        "uninitialized_threadgroup_read",
        f"threadgroup float s[64];\n@@\n{BARRIER}\nout[i] = s[t]; {MARK}",
        "if (t < 60) s[t] = x[i];",
        "s[t] = x[i];",
    ),
    "stale_threadgroup_memory_of_another_group": _swap(
        "uninitialized_threadgroup_read",
        f"threadgroup float s[64];\nif (@@) s[t] = x[i];\n{BARRIER}\nout[i] = s[t]; {MARK}",
        "threadgroup_position_in_grid.x == 0",
        "true",
    ),
    "output_read_before_it_is_written": _swap("uninitialized_device_read", f"out[i] @@ x[i]; {MARK}", "+=", "="),
    "output_partly_written": _swap("output_not_written", "if (@@) out[i] = x[i];", "i % 5 != 3", "i < 128"),
    "output_of_the_last_threadgroup": _swap(
        "output_not_written", "if (i < @@) out[i] = x[i];", "64 * (128 / 64 - 1)", "128"
    ),
    "write_to_an_input": _swap(
        "write_to_input", f"device float* p = @@;\n{WRITE_THROUGH_P}", "(device float*)x", "out"
    ),
    "divergent_barrier": _swap(
        "barrier_after_return",
        f"@@ {BARRIER} {MARK}\nout[i] = t;",
        "if (t < 32)",
        "if (t < 1000)",
    ),
    "barriers_in_both_branches": Bug(
        "divergent_barrier",
        f"if (t < 32) {{\n{BARRIER} {MARK}\n}} else {{\n{BARRIER} {MARK}\n}}\nout[i] = t;",
        f"{BARRIER}\nout[i] = t;",
    ),
    "barrier_in_a_loop_of_different_length": _swap(
        "barrier_after_return", f"for (uint k = 0; k < @@; k++)\n  {BARRIER} {MARK}\nout[i] = t;", "t / 16 + 1", "4"
    ),
    "barrier_after_an_early_return": _swap(
        "barrier_after_return",
        f"threadgroup float s[64];\n@@\ns[t] = x[i];\n{BARRIER} {MARK}\nout[i] = s[t];",
        "if (i >= 100) return;",
        "",
    ),
    "part_of_a_simdgroup": _swap(
        "partial_simdgroup", f"float v = x[i];\nif (@@) v = simd_sum(v); {MARK}\nout[i] = v;", "t < 40", "t < 32"
    ),
    "simd_function_after_an_early_return": _swap(
        "partial_simdgroup", f"out[i] = x[i];\nif (i >= @@) return;\nout[i] = simd_max(x[i]); {MARK}", "100", "96"
    ),
    "too_much_threadgroup_memory": _swap(
        "threadgroup_memory", f"threadgroup float s[@@]; {MARK}\ns[t] = x[i];\nout[i] = s[t];", "8193", "8192"
    ),
    "two_large_threadgroup_arrays": _swap(
        "threadgroup_memory",
        f"threadgroup float a[4096];\nthreadgroup half b[@@]; {MARK}\na[t] = b[t] = x[i];\nout[i] = a[t];",
        "8200",
        "8192",
    ),
    "division_by_zero": _swap("division_by_zero", f"out[i] = 10 / (int(t) - @@); {MARK}", "3", "300"),
    "remainder_by_zero": _swap("division_by_zero", f"out[i] = 10 % (t & @@); {MARK}", "1", "0 | 1"),
    "wild_pointer": _swap(
        "wild_pointer",
        f"device float* p = @@;\n{WRITE_THROUGH_P}",
        "(device float*)0x123456789000ul",
        "out",
    ),
    "null_pointer": _swap(
        "null_pointer",
        f"device float* p = @@;\n{WRITE_THROUGH_P}",
        "nullptr",
        "out",
    ),
    "stack_overflow": _swap(
        "stack_overflow",
        f"float a[@@]; {MARK}\nfor (int k = 0; k < 500; k++) a[(k * 41) % 500] = t + k;\nout[i] = a[t];",
        "20000",
        "500",
    ),
}
