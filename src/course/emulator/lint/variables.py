"""Where variables may stand: threadgroup memory in kernels, constants outside functions, nothing static."""

from course.emulator.errors import Problem
from course.emulator.translate.translator import Unit

_NO_VARIABLE = frozenset(
    {"using", "typedef", "template", "struct", "class", "union", "enum", "namespace", "static_assert", "friend"}
)


def check(unit: Unit) -> list[Problem]:
    """Threadgroup variables outside kernels, static locals, and variables outside functions that are not constant."""
    return [*_threadgroup(unit), *_static(unit), *_global(unit)]


def _threadgroup(unit: Unit) -> list[Problem]:
    bodies = [kernel.body for kernel in unit.kernels.definitions]
    text = "threadgroup variable `{0}` outside a kernel: declare it in the kernel and pass a `threadgroup` pointer"
    return [
        unit.problem(found.start, text.format(found.declarators[0][0]))
        for found in unit.threadgroup.declarations
        if unit.is_own(found.start) and not any(first < found.start < last for first, last in bodies)
    ]


def _static(unit: Unit) -> list[Problem]:
    found = []
    for index in range(len(unit.program)):
        if unit.program.text(index) != "static" or not unit.is_own(index) or not unit.scopes.in_function(index):
            continue
        end = index
        while unit.program.text(end) not in (";", "=", "{", ""):
            end += 1
        if not {"constexpr", "constant"} & {unit.program.text(i) for i in range(unit.scopes.head(index), end)}:
            text = "a static local variable: Metal has none, use threadgroup memory or a buffer to share values"
            found.append(unit.problem(index, text))
    return found


def _global(unit: Unit) -> list[Problem]:
    """Declarations at namespace level that are variables and say neither `constant` nor `constexpr`."""
    program, scopes = unit.program, unit.scopes
    found = []
    for index in range(len(program)):
        if scopes.kind_at(index) != "namespace" or scopes.head(index) != index or not unit.is_own(index):
            continue
        if program.kind(index) != "name" or program.text(index) in _NO_VARIABLE or not scopes.is_variable(index):
            continue
        end = index
        while program.text(end) not in (";", "=", "{", ""):
            end += 1
        words = {program.text(i) for i in range(index, end)}
        if not words & {"constant", "constexpr", "operator"}:
            name = next((program.text(i) for i in range(index + 1, end) if program.text(i + 1) in ("=", ";", "[")), "")
            text = (
                f"variable `{name}` outside a function: Metal allows only constants there, write `constant` before it"
            )
            found.append(unit.problem(index, text))
    return found
