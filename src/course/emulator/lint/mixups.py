"""Pointers of one address space that are given memory of another."""

from collections import Counter

from course.emulator.errors import Problem
from course.emulator.lint.memory import Memory, Name, arguments
from course.emulator.translate.scopes import Function
from course.emulator.translate.translator import Unit


def check(unit: Unit) -> list[Problem]:
    """Assignments and calls of the source's own functions, where both sides are declared plainly.

    Overloaded functions and arguments that are more than a name with an index or offset are left out.
    """
    memory = Memory(unit)
    count = Counter(function.name for function in unit.scopes.functions)
    single = {f.name: f for f in unit.scopes.functions if count[f.name] == 1}
    found = []
    for function in unit.scopes.functions:
        names = memory.names(function)
        for index in range(*function.body):
            if unit.is_own(index) and unit.program.kind(index) == "name":
                found += _assigned(unit, memory, names, index)
                found += _called(unit, memory, names, index, single)
    return found


def _assigned(unit: Unit, memory: Memory, names: dict[str, Name], index: int) -> list[Problem]:
    program = unit.program
    target = names.get(program.text(index))
    before = program.text(index - 1)
    is_target = before in (";", "{", "}", ")") or (before == "*" and program.kind(index - 2) == "name")
    if target is None or not target.is_pointer or program.text(index + 1) != "=" or not is_target:
        return []
    if before == "*" and program.text(index - 3) in (";", "{", "}"):  # `*p = value` writes a number
        return []
    end = index + 2
    while end < len(program) and program.text(end) not in (";", ","):
        end = program.partner[end] + 1 if program.text(end) in "([{" else end + 1
    space = memory.pointed(index + 2, end, names)
    if space in (None, target.space):
        return []
    value = program.snippet(index + 2, end)
    text = f"`{program.text(index)}` points to {target.space} memory and `{value}` is {space} memory: "
    return [unit.problem(index, f"{text}declare the pointer `{space}`")]


def _called(
    unit: Unit, memory: Memory, names: dict[str, Name], index: int, functions: dict[str, Function]
) -> list[Problem]:
    program = unit.program
    function = functions.get(program.text(index))
    opening = index + 1
    if function is None or function.body[0] <= index <= function.body[1]:
        return []
    if program.text(opening) == "<":
        opening = program.angle_end(opening) + 1
    if program.text(opening) != "(" or program.text(index - 1) in (".", "->"):
        return []
    found = []
    parameters = memory.names(function)
    given, wanted = arguments(program, opening), arguments(program, function.params[0])
    if len(given) != len(wanted):  # the compiler's business
        return []
    for (start, end), (first, last) in zip(given, wanted, strict=True):
        name = next((program.text(i) for i in range(first, last) if program.text(i) in parameters), "")
        parameter = parameters.get(name)
        if parameter is None or not {"*", "&", "["} & {program.text(i) for i in range(first, last)}:
            continue
        look = memory.pointed if parameter.is_pointer else memory.lies_in
        space = look(start, end, names)
        if space not in (None, parameter.space):
            text = (
                f"`{program.snippet(start, end)}` is {space} memory and parameter `{name}` of `{function.name}` wants "
                f"{parameter.space} memory: copy the value first, or declare the parameter `{space}`"
            )
            found.append(unit.problem(start, text))
    return found
