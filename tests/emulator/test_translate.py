"""From Metal to C++: tokens, brackets, attributes, kernels, threadgroup variables, words."""

import pytest

from course.emulator.compiler import compiler
from course.emulator.errors import KernelError
from course.emulator.preprocess import preprocess
from course.emulator.translate.program import Program
from course.emulator.translate.scopes import Scopes
from course.emulator.translate.tokens import tokenize
from course.emulator.translate.translator import read, translate
from course.emulator.translate.words import number

KERNEL = "kernel void k(device float* o [[buffer(0)]], uint i [[thread_position_in_grid]]) {{ {0} }}"


def cpp(source: str) -> str:
    text = translate(read(source, frozenset(["kernel"])))
    return text.removeprefix('#include "metal_shim.h"\n')


def body(statements: str) -> str:
    """The C++ of the statements of a kernel, spaces squeezed."""
    text = cpp(KERNEL.format(statements))
    return " ".join(text[text.index("{", text.index("k(")) + 1 : text.rindex("}")].split())


def test_tokens_joined_are_the_source_again():
    source = KERNEL.format("float x = 1.5e-3f;\n  // text\n  o[i] = x >> 2 ? 'a' : \"b\"[0];")
    assert "".join(token.text for token in tokenize(source)) == source


def test_line_markers_set_file_and_line():
    tokens = [t for t in tokenize('a\n# 7 "one.metal" 2\nb\nc\n#line 3 "two.metal"\nd') if t.kind == "name"]
    assert [(t.text, t.file, t.line) for t in tokens] == [
        ("a", "kernel", 1),
        ("b", "one.metal", 7),
        ("c", "one.metal", 8),
        ("d", "two.metal", 3),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.0", "1.0f"),
        ("1.", "1.f"),
        (".5", ".5f"),
        ("1e3", "1e3f"),
        ("1.5e-3", "1.5e-3f"),
        ("0x1p-3", "0x1p-3f"),
        ("2.0f", "2.0f"),
        ("1.0h", "half(1.0f)"),
        ("1h", "half(1.0f)"),
        ("1.5bf", "bfloat(1.5f)"),
        ("42", "42"),
        ("42u", "42u"),
        ("0xFFh", "0xFFh"),
        ("0x1eu", "0x1eu"),
        ("1'000", "1'000"),
    ],
)
def test_numbers_are_never_double(text: str, expected: str):
    assert number(text) == expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("float x = v.xy.x;", "float x = v.template swz<0,1>().x;"),
        ("v.xy = a.yx;", "v.template swzref<0,1>() = a.template swz<1,0>();"),
        ("v.rgb += 1;", "v.template swzref<0,1,2>() += 1;"),
        ("p->zw *= 2;", "p->template swzref<2,3>() *= 2;"),
        ("device const float* p = o;", "const float* p = o;"),
        ("constant float* p = c;", "const float* p = c;"),
        ("const constant float* p = c;", "const float* p = c;"),
        ("constexpr constant int n = 2;", "constexpr int n = 2;"),
        ("thread float& r = x;", "float& r = x;"),
    ],
)
def test_words(statement: str, expected: str):
    assert body(statement) == expected


def test_a_struct_member_is_no_swizzle():
    text = cpp("struct P { float2 xy; };\n" + KERNEL.format("P p; p.xy = 1;"))
    assert "p.xy = 1" in text


def test_constants_outside_functions_must_be_known_to_the_compiler():
    text = cpp("constant float a = 1;\nconstant float t[2] = {1, 2};\n constant float f(int);\n" + KERNEL.format(""))
    assert "constinit const float a = 1.0" not in text
    assert "constinit const float a = 1" in text
    assert "constinit const float t[2]" in text
    assert "constinit const float f" not in text


def test_threadgroup_variables_become_the_runtimes():
    text = body("threadgroup float s[8][4], t; threadgroup float* p = s[0];")
    assert "using msl_type_s = float [ 8 ] [ 4 ];" in text
    assert '::msl::tgvar<msl_type_s>(&msl_key_s, "s")' in text
    assert '::msl::tgvar<msl_type_t>(&msl_key_t, "t")' in text
    assert "float* p = s[0];" in text


def test_kernels_are_registered_with_their_arguments():
    text = cpp(
        "[[kernel]] void k(const constant int* n [[buffer(2)]], threadgroup float* s [[threadgroup(0)]],\n"
        "  ushort2 g [[threadgroup_position_in_grid]]) {}"
    )
    assert (
        '{{::msl::kBuffer, 2, "n"}, {::msl::kThreadgroup, 0, "s"}, {::msl::kThreadgroupPositionInGrid, -1, "g"}}'
        in text
    )
    assert 'MSL_REGISTER("k", k__msl_args, k)' in text


def test_buffers_without_an_attribute_are_numbered():
    text = cpp("kernel void k(device int* a, constant int& b [[buffer(0)]], device int* c) {}")
    assert '{::msl::kBuffer, 1, "a"}, {::msl::kBuffer, 0, "b"}, {::msl::kBuffer, 2, "c"}' in text


def test_template_kernels_are_registered_where_they_are_instantiated():
    text = cpp(
        "template <typename T, int N> kernel void k(device T* o [[buffer(0)]]) {}\n"
        'template [[host_name("k_f")]] [[kernel]] decltype(k<float, 3>) k<float, 3>;\n'
        'template [[host_name("k_h")]] [[kernel]] void k<half, 4>(device half*);\n'
    )
    assert 'MSL_REGISTER("k_f", k__msl_args, k < float , 3 >)' in text
    assert 'MSL_REGISTER("k_h", k__msl_args, k < half , 4 >)' in text
    assert text.count("MSL_REGISTER") == 2
    assert text.index("k__msl_args[]") < text.index("template <typename T")


def test_every_line_stays_where_it_was():
    source = KERNEL.format("\n threadgroup float s[2];\n\n o[i] = 1.0;\n")
    assert cpp(source).count("\n") == source.count("\n")
    assert "o[i] = 1.0f" in cpp(source).split("\n")[3]


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        ("void f() {\n  g(1;\n}", 3, "cannot close the '('"),
        ("void f() {\n", 1, "never closed"),
        ("void f() {}\n}", 2, "closes nothing"),
        ("(" * 300 + ")" * 300, 1, "nested brackets"),
        ("kernel float k() {}", 1, "a kernel returns void"),
        ("kernel void k", 1, "expected `NAME("),
        ("kernel void k(uint i) {}", 1, "does not say where it comes from"),
        ("int a = 1 @ 2;", 1, "unexpected '@'"),
        ('int a = "b;', 1, "unexpected '\"'"),
        (KERNEL.format("\nthreadgroup float s[4] = {1};"), 2, "initialiser"),
        (KERNEL.format("\nthreadgroup int n = 1;"), 2, "initialiser"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(source: str, line: int, words: str):
    with pytest.raises(KernelError) as caught:
        cpp(source)
    assert words in str(caught.value)
    assert caught.value.problems[0].line == line


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        ("int a;\n#error Week 2 Day 5 Task 1: add - see there\n", 2, "Week 2 Day 5 Task 1: add - see there"),
        ('int a;\n#error "Week 2 Day 5 Task 1: add"\n', 2, '"Week 2 Day 5 Task 1: add"'),
        ("\n\n#include <vector>\n", 3, "no header vector"),
        ("int a; /* b\n", 1, "unterminated comment"),
        ("#if 1\nint a;\n", 1, "unterminated"),
        ("int a\0b;", 1, "cannot read '\\x00'"),
        ("int a = 1;\n\u200b int b;", 2, "cannot read"),
    ],
)
def test_the_preprocessor_tells_file_and_line(source: str, line: int, words: str):
    with pytest.raises(KernelError) as caught:
        preprocess(f'#line 1 "some.metal"\n{source}', compiler())
    assert words in str(caught.value)
    assert (caught.value.problems[0].file, caught.value.problems[0].line) == ("some.metal", line)


def test_scopes_know_functions_from_types_and_values():
    source = (
        "namespace a { struct S { int x; int f() thread const { return 1; } }; constant int t[] = {1, 2}; }\n"
        "template <typename T> T g(T x) { for (int i = 0; i < 3; i++) { if (x) { } } S s = {1}; return x; }\n"
        "enum E { A, B };\n"
    )
    program = Program(tokenize(source))
    assert [f.name for f in Scopes(program).functions] == ["f", "g"]
    assert [f.is_template for f in Scopes(program).functions] == [False, True]
