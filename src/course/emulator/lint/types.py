"""Which names of a source are types: what `name *` then means."""

from course.emulator.translate.program import Program

_VECTORS = ["bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "bfloat"]
_SIZED = [f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_SCALARS = [
    *_VECTORS,
    *_SIZED,
    "float16_t",
    "bfloat16_t",
    "size_t",
    "ptrdiff_t",
    "signed",
    "unsigned",
    "void",
    "double",
]
_OTHERS = {"atomic_int", "atomic_uint", "atomic_bool", "atomic_float", "atomic", "vec", "packed_vec", "array"}
_MATRICES = {"simdgroup_matrix", "simdgroup_float8x8", "simdgroup_half8x8", "simdgroup_bfloat8x8"}

BUILTIN = (
    frozenset(_SCALARS)
    | {f"{prefix}{name}{n}" for prefix in ("", "packed_") for name in _VECTORS for n in (2, 3, 4)}
    | _OTHERS
    | _MATRICES
)

_BEFORE_NAME = BUILTIN | {"&", "*"}


def type_names(program: Program) -> frozenset[str]:
    """The built-in types and the source's own: structs, enums, aliases, type parameters of templates.

    A name that is a type in one template and a variable elsewhere is left out: what `T * n` means is then unclear.
    """
    found: set[str] = set()
    variables: set[str] = set()
    for index, token in enumerate(program.code):
        following = program.text(index + 1)
        if token.text in ("struct", "class", "union", "enum", "typename") and program.kind(index + 1) == "name":
            if program.text(index + 2) != "::":
                found.add(following)
        elif token.text == "using" and program.text(index + 2) == "=":
            found.add(following)
        elif token.text == "typedef":
            found.add(_typedef_name(program, index))
        elif following in ("=", ";", ",", ")", "[") and program.text(index - 1) in _BEFORE_NAME:
            variables.add(token.text)
    return BUILTIN | (found - variables)


def _typedef_name(program: Program, index: int) -> str:
    end = index
    while end < len(program) and program.text(end) != ";":
        end += 1
    end -= 1
    while program.text(end) == "]":
        end = program.partner[end] - 1
    return program.text(end)


def type_start(program: Program, end: int, types: frozenset[str]) -> int:
    """Index of the first token of the type that ends at `end`, qualifiers aside; -1 where there is no type."""
    name = end
    if program.text(end) == ">":
        name = program.angle_start(end) - 1
    if name < 0 or program.text(name) not in types:
        return -1
    while program.text(name - 1) == "::" and program.kind(name - 2) == "name":
        name -= 2
    return name
