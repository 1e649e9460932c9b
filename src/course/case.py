"""What a graded test is made of: a class of plain functions and the parameters to run it with.

A case knows nothing about pytest, so the child process that runs the code under test starts quickly."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import FunctionType

from course.stub import stub_of

DEFAULT_TIMEOUT = 5.0
_FUNCTIONS = ("inputs", "observe", "verify", "check")


@dataclass(frozen=True)
class Case:
    """One property of one task: `inputs`, `observe` and `verify` (or `check`) as plain functions, and its parameters.

    `timeout` is in seconds and holds for each call of `observe`.
    """

    name: str
    property: str
    task: int
    params: tuple[dict[str, object], ...]
    timeout: float
    inputs: FunctionType | None
    observe: FunctionType
    verify: FunctionType | None
    check: FunctionType | None


def case(
    task: int, params: Iterable[dict[str, object]] = ({},), timeout: float = DEFAULT_TIMEOUT
) -> Callable[[type], Case]:
    """Turn a class into a graded case of task number `task`, run once for each of `params`."""

    def build(cls: type) -> Case:
        chosen = tuple(params)
        parts = {name: vars(cls).get(name) for name in _FUNCTIONS}
        problem = _problem(cls, chosen, parts)
        if problem:
            raise TypeError(f"case {cls.__name__}: {problem}")
        text = " ".join((cls.__doc__ or "").split())
        return Case(cls.__name__, text, task, chosen, timeout, **parts)

    return build


def _problem(cls: type, params: tuple[dict[str, object], ...], parts: dict[str, object]) -> str | None:
    if not cls.__doc__:
        return "needs a docstring that states the property: it is shown when the case fails"
    if not params:
        return "needs at least one set of parameters: without it nothing is graded"
    if any(part is not None and not isinstance(part, FunctionType) for part in parts.values()):
        return f"{', '.join(_FUNCTIONS)} must be plain functions without self"
    if parts["observe"] is None:
        return "needs observe(solution, inputs)"
    if (parts["verify"] is None) == (parts["check"] is None):
        return "needs either verify(inputs, values) or check(observe)"
    if parts["verify"] and parts["inputs"] is None:
        return "needs inputs(rng, ...) beside verify"
    return None


def error_of(function: Callable[[], object]) -> dict[str, object]:
    """What `function` raised, as plain values: {"type": "ValueError", "message": ...} or {"type": None, "value": ...}.

    A stub's error is not caught: it means "not written yet", not "refused".
    """
    try:
        value = function()
    except Exception as error:
        if stub_of(error):
            raise
        return {"type": type(error).__name__, "message": str(error)}
    return {"type": None, "value": value}
