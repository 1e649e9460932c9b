"""What a Mac accepts and refuses, by the rules of the Metal Shading Language: the emulator must decide alike.

Sources stand in tables: accepted ones are compiled together, refused ones must give file, line and the fix.
"""

import re
from pathlib import Path

import mlx.core
import pytest

from course.emulator import cache
from course.emulator.compiler import compiler
from course.emulator.errors import KernelError
from course.emulator.lint import lint
from course.emulator.preprocess import preprocess
from course.emulator.translate.translator import read, translate

FILE = "some.metal"
PREFIX = f'#include <metal_stdlib>\nusing namespace metal;\n#line 1 "{FILE}"\n'
KERNEL = "kernel void {0}(device float* o [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {{\n{1}\n}}\n"

# name -> (helpers, statements of a kernel with `device float* o` and `uint i`)
ACCEPTED = {
    "attributes": (
        "inline __attribute__((always_inline)) float one() { return 1; }\n"
        "struct __attribute__((packed)) S { char c; };",
        "o[i] = one() + __builtin_ctz(8);",
    ),
    "address_spaces": ("", "device float* p = o; thread float* q; float x = 1; q = &x; p[i] = *q;"),
    "const_left_or_right": ("", "const device float* p = o; device const float* q = o; o[i] = p[i] + q[i];"),
    "auto_pointer": ("", "auto p = o + 1; p[i] = 1;"),
    "constant_table": ("constant float table[4] = {1, 2, 3, 4};", "o[i] = table[i % 4];"),
    "constexpr_table": ("constexpr constant int N = 4;", "o[i] = N;"),
    "static_constant": ("static constant constexpr int M = 4;", "o[i] = M;"),
    "threadgroup_array": (
        "",
        "threadgroup float s[8][4]; s[i % 8][0] = 1; threadgroup_barrier(mem_flags::mem_threadgroup); o[i] = s[0][0];",
    ),
    "threadgroup_pointer": (
        "void fill(threadgroup float* s, uint i) { s[i] = 1; }",
        "threadgroup float s[1024]; fill(s, i); fill(&s[0], i); fill(s + 0, i); o[i] = s[i];",
    ),
    "threadgroup_scalar_reference": (
        "void set(threadgroup float& s) { s = 1; }",
        "threadgroup float total; threadgroup float parts[4]; set(total); set(parts[2]); o[i] = total;",
    ),
    "thread_references": (
        "void swap_them(thread float& a, thread float& b) { float t = a; a = b; b = t; }",
        "float x[2] = {1, 2}; float y = 3; swap_them(x[0], x[1]); swap_them(y, x[0]); o[i] = x[0];",
    ),
    "struct_with_method": (
        "struct Pair { float2 xy; float w; float sum() const thread { return xy.x + w; } };",
        "Pair p; p.xy = float2(1, 2); p.w = 3.0; o[i] = p.sum();",
    ),
    "templates": (
        "template <typename T, int N> inline T total(thread const T* x) { T s = 0; for (int j = 0; j < N; j++) "
        "{ s += x[j]; } return s; }",
        "float x[4] = {1, 2, 3, 4}; o[i] = total<float, 4>(x);",
    ),
    "template_recursion": (
        "template <int N> struct Power { static constexpr constant int value = 2 * Power<N - 1>::value; };\n"
        "template <> struct Power<0> { static constexpr constant int value = 1; };",
        "o[i] = Power<5>::value;",
    ),
    "overloads": ("float f(float x) { return x; }\nint f(int x) { return x; }", "o[i] = f(1) + f(2.0f);"),
    "swizzles": ("", "float4 v = float4(1, 2, 3, 4); v.xy = v.zw; v.zw += 1; float2 u = v.bg; o[i] = u.x + v.xyz.z;"),
    "vector_operators": ("", "float4 v = float4(1.0); v = v * 2 + v; o[i] = dot(v, v) + length(v.xy);"),
    "vector_conversion": ("", "uint3 a = uint3(1, 2, 3); float3 b = float3(a); o[i] = b.z;"),
    "unsuffixed_floats": ("", "o[i] = 1.0 / 3.0 + 1e-3;"),
    "half_literals": ("", "half h = 1.5h; h *= 2.0h; o[i] = h;"),
    "half_from_float": ("", "float x = 1.5; half h = x; o[i] = h;"),
    "float_from_bfloat": ("", "bfloat b = bfloat(1.5f); float x = b; o[i] = x + float(b * b);"),
    "bfloat_arithmetic": ("", "bfloat a = bfloat(1.0f), b = bfloat(2.0f); bfloat c = a * b; c += a; o[i] = c;"),
    "as_type": ("", "o[i] = as_type<float>(as_type<uint>(1.0f) & 0x7fffffffu);"),
    "namespaced_functions": ("", "o[i] = metal::exp(1.0f) + metal::fast::exp(1.0f) + metal::precise::sqrt(2.0f);"),
    "same_type_functions": (
        "",
        "o[i] = max(1.0f, 2.0f) + clamp(3.0f, 0.0f, 1.0f) + min(1, 2);",
    ),
    "simdgroup_functions": ("", "o[i] = simd_sum(float(i)) + simd_max(1.0f) + simd_shuffle_xor(2.0f, 1);"),
    "simdgroup_matrix": (
        "",
        "simdgroup_float8x8 a = make_filled_simdgroup_matrix<float, 8, 8>(1.0f), c(0.0f);"
        "simdgroup_multiply_accumulate(c, a, a, c); simdgroup_store(c, o, 8);",
    ),
    "atomics": (
        "",
        "device atomic_uint* a = (device atomic_uint*)o; atomic_fetch_add_explicit(a, 1u, memory_order_relaxed);",
    ),
    "pragma_unroll": ("", "#pragma unroll\nfor (int j = 0; j < 4; j++) { o[j] = j; }"),
    "macros": ("#define SQUARE(x) ((x) * (x))", "o[i] = SQUARE(3.0f);"),
    "if_constexpr": (
        "template <bool B> float g() { if constexpr (B) { return 1; } return 2; }",
        "o[i] = g<true>();",
    ),
    "switch": ("", "switch (i) { case 0: o[0] = 1; break; default: o[i] = 2; }"),
    "enum": ("enum Mode { OFF, ON };", "Mode m = ON; o[i] = m == ON ? 1 : 0;"),
    "alias": ("using Row = device float*;\ntypedef float4 Four;", "Row r = o; Four f = Four(1); r[i] = f.x;"),
    "constants": ("", "o[i] = M_PI_F + INFINITY;"),
    "limits": ("", "o[i] = numeric_limits<float>::max() + numeric_limits<half>::lowest();"),
    "select": ("", "o[i] = select(1.0f, 2.0f, i > 3);"),
    "ternary_of_one_type": ("", "o[i] = i > 3 ? 1.0f : 0.0f;"),
    "comparison_chain": ("", "int a = 1, b = 2; if (a < b && b > a) { o[i] = 1; }"),
    "shift_right": ("", "o[i] = (i >> 2) & 3;"),
    "nested_templates": ("template <typename T> struct Box { T x; };", "Box<Box<float>> b; b.x.x = 1; o[i] = b.x.x;"),
    "long_types": ("", "long a = 1; ulong b = 2; size_t c = 3; int64_t d = 4; o[i] = a + long(b) + long(c) + d;"),
    "reference_to_a_pointer": ("void next(device float*& p) { p += 1; }", "device float* p = o; next(p); p[i] = 1;"),
    "a_variable_named_like_a_type_parameter": (
        "template <typename T> T same(T x) { return x; }",
        "int T = 2; int n = 3; o[i] = same(1) + T * n;",
    ),
    "static_assert": ("", 'static_assert(sizeof(float) == 4, "a float has 4 bytes"); o[i] = 1;'),
    "array_type": ("typedef float Row[4];", "Row r; r[0] = 1; o[i] = r[0] * 2;"),
    "own_erf": ("float erf(float x) { return x; }", "o[i] = erf(1.0f);"),
    "noexcept": ("float f(float x) noexcept { return x; }", "o[i] = f(1);"),
    "mlx_helpers": ("", "bfloat16_t b = bfloat16_t(1.0f); float16_t h = float16_t(b); o[i] = float(h);"),
}

# name -> (helpers, statements, line of the error, words of the message)
REFUSED = {
    "pointer_without_space": ("", "float* p = o;", 2, "has no address space"),
    "reference_without_space": ("void f(float& x) { x = 1; }", "", 1, "reference `float&` has no address space"),
    "cast_without_space": ("", "device uint* q = (device uint*)o;\nq = (uint*)o;", 3, "has no address space"),
    "template_pointer": (
        "template <typename T> void f(T* x) { x[0] = 1; }",
        "",
        1,
        "pointer `T*` has no address space",
    ),
    "alias_without_space": ("using P = float*;", "", 1, "has no address space"),
    "pointer_to_pointer": ("", "device float** p = &o;", 2, "has no address space"),
    "device_from_threadgroup": ("", "threadgroup float s[4];\ndevice float* p = s;", 3, "`s` is threadgroup memory"),
    "threadgroup_from_device": ("", "threadgroup float* p = &o[1];", 2, "`&o[1]` is device memory"),
    "thread_from_device": ("", "thread float* p;\np = o + 1;", 3, "`o + 1` is device memory"),
    "device_from_constant": (
        "constant float t[2] = {1, 2};\nvoid f(device const float* x) {}",
        "f(t);",
        4,
        "`t` is constant memory",
    ),
    "argument_space": ("void f(threadgroup float* x) { x[0] = 1; }", "f(o);", 3, "`o` is device memory"),
    "reference_space": (
        "void f(thread float& x) { x = 1; }",
        "threadgroup float s[3];\nf(s[1]);",
        4,
        "`s[1]` is threadgroup memory",
    ),
    "write_to_constant": ("void f(constant float* x) { x[0] = 1; }", "", 1, "cannot be written"),
    "write_to_const": ("", "const device float* p = o;\np[0] = 1;", 3, "cannot be written"),
    "threadgroup_initialiser": ("", "threadgroup float s[4] = {0, 0, 0, 0};", 2, "has an initialiser"),
    "threadgroup_scalar_initialiser": ("", "threadgroup float s = 0;", 2, "has an initialiser"),
    "threadgroup_in_helper": ("void f() { threadgroup float s[4]; s[0] = 1; }", "", 1, "outside a kernel"),
    "threadgroup_global": ("threadgroup float s[4];", "", 1, "outside a kernel"),
    "global_variable": ("float counter = 0;", "", 1, "allows only constants there"),
    "global_array": ("float table[2];", "", 1, "allows only constants there"),
    "dynamic_constant": ("float f() { return 1; }\nconstant float c = f();", "", 2, "constant initializer"),
    "static_local": ("", "static int calls = 0;", 2, "static local"),
    "variable_length_array": ("", "float a[i];", 2, "must be known to the compiler"),
    "recursion": ("int f(int n) { return n ? f(n - 1) : 0; }", "", 1, "recursion, `f` -> `f`"),
    "mutual_recursion": (
        "int g(int n);\nint f(int n) { return g(n); }\nint g(int n) { return f(n); }",
        "",
        2,
        "recursion, `f` -> `g` -> `f`",
    ),
    "double": ("", "double d = 1;", 2, "use float"),
    "new": ("", "device float* p = new float;", 2, "no `new`"),
    "delete": ("", "delete o;", 2, "no `delete`"),
    "try": ("", "try { o[0] = 1; } catch (...) {}", 2, "no exceptions"),
    "throw": ("", "throw 1;", 2, "no exceptions"),
    "goto": ("", "goto end;\nend: o[0] = 1;", 2, "no goto"),
    "virtual": ("struct S { virtual float f() { return 1; } };", "", 1, "no virtual"),
    "dynamic_cast": ("struct S {};", "thread S* p = dynamic_cast<thread S*>(0);", 3, "no dynamic_cast"),
    "std": ("", "o[0] = std::max(1.0f, 2.0f);", 2, "use metal::"),
    "std_include": ("#include <algorithm>", "", 1, "no header algorithm"),
    "libc_function": ("", "o[0] = expf(1.0f);", 2, "Metal calls it `exp`"),
    "using_std": ("using namespace std;", "", 1, "no namespace std"),
    "c_constant": ("", "o[0] = M_PI;", 2, "Metal calls it `M_PI_F`"),
    "missing_function": ("", "o[0] = erf(1.0f);", 2, "Metal has no such function"),
    "reserved_name": ("", "uint thread = i;", 2, "`thread` is a word of Metal"),
    "printf": ("", 'printf("x");', 2, "no printf"),
    "string": ("", 'constant char* s = "text";', 2, "no strings"),
    "assembly": ("", 'asm("nop");', 2, "no inline assembly"),
    "compilers_function": ("", "__builtin_trap();", 2, "belongs to the C++ compiler"),
    "attribute_without_checks": (
        "__attribute__((always_inline, no_sanitize_thread)) void f() {}",
        "",
        1,
        "the attribute `no_sanitize_thread`",
    ),
    "attribute_that_runs": ("__attribute__((__constructor__)) void f() {}", "", 1, "the attribute `constructor`"),
    "emulators_names": ("using namespace msl;", "", 1, "choose another one"),
    "file_of_the_machine": ('#include "/etc/passwd"', "", 1, "no header /etc/passwd"),
    "line_of_another_file": ('# 1 "other.h"\nextern "C" int system();', "", 1, "no header other.h"),
    "line_by_a_macro": ('#define PLACE 7 "other.h"\n#line PLACE\nextern "C" int system();', "", 1, "and no #line"),
    "lambda": ("", "auto f = [](float x) { return x; };\no[0] = f(1);", 2, "a lambda"),
    "auto_parameter": ("void f(auto x) {}", "", 1, "C++20"),
    "concept": ("template <typename T> concept C = true;", "", 1, "C++20"),
    "spaceship": ("", "o[0] = (1 <=> 2) == 0;", 2, "C++20"),
    "bfloat_from_float": ("", "bfloat b;\nb = 1.0f;", 3, "bfloat16_t(value)"),
    "bfloat16_t_from_float": ("", "bfloat16_t b;\nb = 1.0f;", 3, "bfloat16_t(value)"),
    "bfloat_initialised": ("", "bfloat b = 1.0f;", 2, "bfloat16_t(value)"),
    "vector_conversion": ("", "uint3 a = uint3(1);\nfloat3 b = a;", 3, "converts vectors only when told"),
    "max_of_two_types": ("", "o[0] = max(1, i);", 2, "arguments of one type"),
    "max_of_float_and_int": ("", "o[0] = max(o[0], 0);", 2, "arguments of one type"),
    "missing_return": ("float f(float x) {}", "o[0] = f(1);", 1, "must return a value"),
    "unknown_name": ("", "o[thread_index] = 1;", 2, "did you mean thread_index_in_threadgroup?"),
    "too_few_components": ("", "float4 v = float4(1.0f, 2.0f);", 2, "one number per element"),
    "wrong_member": ("", "float2 v = float2(1);\no[0] = v.z;", 3, None),
    "narrowing": ("", "float x = 1;\nint a[2] = {x, 2};", 3, "convert it"),
    "error_directive": ('#error "Week 2 Day 5 Task 1: add"', "", 1, "Week 2 Day 5 Task 1: add"),
    "unbalanced": ("", "if (i > 1) {\no[0] = 1;", 1, None),
}

KERNELS_REFUSED = {
    "unknown_attribute": (
        "kernel void k(device float* o [[buffer(0)]], uint i [[thread_indx_in_threadgroup]]) {}",
        "did you mean [[thread_index_in_threadgroup]]?",
    ),
    "no_attribute": ("kernel void k(uint i) {}", "does not say where it comes from"),
    "no_space": ("kernel void k(float* o [[buffer(0)]]) {}", "has no address space"),
    "not_void": ("kernel float k(device float* o [[buffer(0)]]) { return 1; }", "a kernel returns void"),
    "signed_thread_position": (
        "kernel void k(device float* o [[buffer(0)]], int i [[thread_position_in_grid]]) {}",
        "Metal wants ushort, uint",
    ),
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp()))


def build(source: str) -> None:
    cache.build(PREFIX + source, False, frozenset([FILE]))


@pytest.mark.parametrize("part", range(3))
def test_a_mac_accepts(part: int):
    """Compiled in three parts; `namespace` keeps the helpers of one from those of the others."""
    names = sorted(ACCEPTED)[part::3]
    text = ""
    for name in names:
        helpers, statements = ACCEPTED[name]
        inside = "\n".join(line for line in helpers.split("\n") if line.startswith("#"))
        rest = "\n".join(line for line in helpers.split("\n") if not line.startswith("#"))
        text += f"{inside}\nnamespace {name}_test {{\n{rest}\n{KERNEL.format(f'run_{name}', statements)}}}\n"
    build(text)


@pytest.mark.parametrize("name", REFUSED)
def test_a_mac_refuses(name: str):
    helpers, statements, line, words = REFUSED[name]
    with pytest.raises(KernelError) as caught:
        build((f"{helpers}\n" if helpers else "") + KERNEL.format("k", statements))
    assert caught.value.problems, str(caught.value)
    assert any((p.file, p.line) == (FILE, line) for p in caught.value.problems), str(caught.value)
    assert (words or "") in str(caught.value)


@pytest.mark.parametrize("name", KERNELS_REFUSED)
def test_a_mac_refuses_the_kernel(name: str):
    source, words = KERNELS_REFUSED[name]
    with pytest.raises(KernelError) as caught:
        build(source)
    assert words in str(caught.value)
    assert (caught.value.problems[0].file, caught.value.problems[0].line) == (FILE, 1)


def test_a_missing_semicolon_is_told_at_its_line_or_the_next():
    with pytest.raises(KernelError, match="a ';' is missing") as caught:
        build(KERNEL.format("k", "float x = 1\no[0] = x;"))
    assert caught.value.problems[0].line in (2, 3), "compilers differ"


@pytest.mark.parametrize("name", ["softmax", "gemv", "quantized", "sdpa_vector", "logsumexp", "steel/gemm/mma"])
def test_mlx_kernels_are_accepted(name: str):
    """They are compiled for every Mac that runs MLX; function constants alone are not modelled."""
    include = Path(mlx.core.__file__).parent / "include"
    file = include / "mlx" / "backend" / "metal" / "kernels" / f"{name}.h"
    source = preprocess(f'#include "{file}"\n', compiler(), include)
    unit = read(source, frozenset(re.findall(r'^# \d+ "([^"]+)"', source, re.MULTILINE)))
    assert len(unit.program) > 500
    assert [str(problem) for problem in lint(unit) if "function_constant" not in problem.text] == []
    translate(unit)


def test_an_error_shows_the_text_of_its_line():
    with pytest.raises(KernelError) as caught:
        build(KERNEL.format("k", "o[0] = 1;\n  double d = 2;"))
    assert str(caught.value).splitlines() == [
        f"{FILE}:3: `double`: Metal has no double: use float",
        "    double d = 2;",
    ]
