"""Words that Metal does not have, or that only newer C++ has."""

from course.emulator.errors import Problem
from course.emulator.translate.program import Program
from course.emulator.translate.spaces import SPACES
from course.emulator.translate.translator import Unit

_FORBIDDEN = {
    "double": "Metal has no double: use float",
    "new": "Metal has no `new`: use a local array or a buffer",
    "delete": "Metal has no `delete`: nothing is allocated in a kernel",
    "try": "Metal has no exceptions: test the condition instead",
    "catch": "Metal has no exceptions: test the condition instead",
    "throw": "Metal has no exceptions: write an error value to an output instead",
    "goto": "Metal has no goto: use a loop or a function",
    "virtual": "Metal has no virtual functions: use a template",
    "dynamic_cast": "Metal has no dynamic_cast: use a template",
    "typeid": "Metal has no typeid: use is_same",
    "thread_local": "Metal has no thread_local: local variables are each thread's own",
    "register": "Metal has no register: delete the word",
    "extern": "Metal kernels have no external variables or C functions: delete it",
    "asm": "Metal has no inline assembly: write C++",
    "__asm": "Metal has no inline assembly: write C++",
    "__asm__": "Metal has no inline assembly: write C++",
    "wchar_t": "Metal has no wchar_t: use uint",
    "std": "Metal has no namespace std: use metal::, which has the same names",
    "concept": "Metal has no C++20: use enable_if",
    "requires": "Metal has no C++20: use enable_if",
    "consteval": "Metal has no C++20: use constexpr",
    "constinit": "Metal has no C++20: use constant or constexpr",
    "co_await": "Metal has no coroutines",
    "co_yield": "Metal has no coroutines",
    "co_return": "Metal has no coroutines",
    "malloc": "Metal has no heap: use a local array or a buffer",
    "free": "Metal has no heap: use a local array or a buffer",
    "printf": "Metal has no printf: write the value to an output buffer",
    "fprintf": "Metal has no printf: write the value to an output buffer",
    "assert": "Metal has no assert: write an error value to an output buffer",
    "memcpy": "Metal has no memcpy: assign the elements in a loop",
    "memset": "Metal has no memset: assign the elements in a loop",
    "abort": "a kernel cannot abort: return instead",
    "exit": "a kernel cannot exit: return instead",
    **{f"M_{name}": f"Metal calls it `M_{name}_F`" for name in ("PI", "E", "SQRT2", "LN2", "LN10", "PI_2", "1_PI")},
    "msl": "the emulator has this name for itself: choose another one",
    "rand": "Metal has no random numbers: pass them in a buffer",
}
_LIBC = (
    *(
        "acos",
        "asin",
        "atan",
        "atan2",
        "ceil",
        "copysign",
        "cos",
        "cosh",
        "exp",
        "exp2",
        "fabs",
        "floor",
        "fma",
        "fmax",
    ),
    *("fmin", "fmod", "log", "log2", "log10", "pow", "rint", "round", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
)
_LIBC_FLOAT = {f"{name}f": name for name in _LIBC}
_MISSING = frozenset(
    {"erf", "erfc", "lgamma", "tgamma", "expm1", "cbrt", "nearbyint", "remainder", "lrint", "lround", "llround", "logb"}
)
# The compiler's own words. What they can do to the emulator, from leaving out its checks to ending the process, no
# Metal kernel needs.
_COMPILERS = ("__sync_", "__atomic_", "__c11_", "__builtin_", "__tsan", "__ubsan", "msl_", "MSL_")
_BUILTINS = frozenset({"__builtin_ctz", "__builtin_clz", "__builtin_popcount", "__builtin_expect"})  # MLX's kernels do
_ATTRIBUTE = ("__attribute__", "__attribute", "__declspec")
_HARMLESS = frozenset({"always_inline", "noinline", "unused", "packed", "aligned"})
_METAL_WORDS = SPACES | {"kernel", "vertex", "fragment"}
_AFTER_VARIABLE = frozenset({"=", ",", ")", "+", "-", "/", "%", "<", ">", "[", ".", "+=", "-=", "*=", "++", "--", "=="})
_BEFORE_LAMBDA = frozenset({"=", "(", ",", "return", "{", ";", "&&", "||", "?", ":", "}"})


def check(unit: Unit) -> list[Problem]:
    """Forbidden words, C's names for functions, strings and lambdas."""
    found = []
    for index in range(len(unit.program)):
        text = _fault(unit, index) if unit.is_own(index) and index not in unit.attributes.inside else None
        if text:
            found.append(unit.problem(index, text))
    return found


def _fault(unit: Unit, index: int) -> str | None:
    program = unit.program
    word = program.text(index)
    if program.kind(index) == "string" and not _in_static_assert(unit, index):
        return f"the string {word}: Metal has no strings outside attributes, write numbers to an output buffer"
    if word == "<=>":
        return "`<=>`: Metal has no C++20: compare with < and =="
    if word == "[" and program.text(index - 1) in _BEFORE_LAMBDA and program.text(program.partner[index] + 1) in "({":
        return "a lambda: it needs a newer Metal than all Macs have, write a function"
    if program.kind(index) != "name" or program.text(index - 1) in (".", "->"):
        return None
    called = program.text(index + 1) == "("
    if word in _LIBC_FLOAT and called:
        return f"`{word}`: Metal calls it `{_LIBC_FLOAT[word]}`"
    if word in _ATTRIBUTE:
        return _attribute(program, index)
    if word.startswith(_COMPILERS) and word not in _BUILTINS:
        return f"`{word}` belongs to the C++ compiler: use a function of the Metal library"
    if word in _MISSING and called and word not in {function.name for function in unit.scopes.functions}:
        return f"`{word}`: Metal has no such function, write it yourself"
    if word in _METAL_WORDS and program.text(index + 1) in _AFTER_VARIABLE:
        return f"`{word}` is a word of Metal: choose another name"
    return f"`{word}`: {_FORBIDDEN[word]}" if word in _FORBIDDEN else None


def _attribute(program: Program, index: int) -> str | None:
    """What is wrong with the attributes in the parentheses after `index`."""
    last = program.partner[index + 1] if program.text(index + 1) == "(" else index + 1
    names = (program.text(i).strip("_") for i in range(index + 1, last) if program.kind(i) == "name")
    unknown = next((name for name in names if name not in _HARMLESS), None)
    return f"the attribute `{unknown}` belongs to the C++ compiler: delete it" if unknown else None


def _in_static_assert(unit: Unit, index: int) -> bool:
    return unit.program.text(unit.scopes.head(index)) == "static_assert"
