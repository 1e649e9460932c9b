"""The inputs of a graded case, one per set of parameters, and the verdict on what a package made of them."""

import contextlib
import inspect
import io
from collections.abc import Callable, Iterator

import numpy as np

from course.case import Case
from course.codec import pack
from course.failure import one_line

Observe = Callable[[object], object]
_RECORDED = 30  # examples of a property that makes its own: the largest of them is compared


def inputs_of(case: Case, index: int) -> object:
    """As the graded run draws them, with the public seed; None where a case has none."""
    if not case.inputs:
        return None
    rng = np.random.default_rng([0, index, *case.name.encode()])
    return case.inputs(rng, **case.params[index])


def samples(case: Case, observe: Observe) -> Iterator[tuple[int, object]]:
    """The parameter set's index and inputs for `observe`. observe: the reference, for properties that make examples."""
    for index in range(len(case.params)):
        inputs = inputs_of(case, index)
        yield index, _largest(case, inputs, observe) if case.check else inputs


def verdict(case: Case, index: int, values: object, observe: Observe) -> str:
    """What the case says against the values; "" where it passes. Properties that make examples call `observe`."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            if case.check:
                _check(case, inputs_of(case, index), observe)
            else:
                case.verify(inputs_of(case, index), values)
    except AssertionError as error:
        return str(error).splitlines()[0] if str(error) else "an assertion failed"
    except Exception as error:  # values of an unexpected shape can do anything to a judge
        return one_line(error).splitlines()[0]
    return ""


def _check(case: Case, inputs: object, observe: Observe) -> None:
    """A property takes `observe` alone, or the inputs too."""
    case.check(*[observe, inputs][: len(inspect.signature(case.check).parameters)])


class _Enough(BaseException):
    """Ends a property that would go on with examples."""


def _largest(case: Case, inputs: object, observe: Observe) -> object:
    """The largest of the first examples that a property makes."""
    seen: list[tuple[int, object]] = []

    def recorded(example: object) -> object:
        seen.append((len(pack(example)), example))
        if len(seen) > _RECORDED:
            raise _Enough
        return observe(example)

    with contextlib.suppress(_Enough):
        _check(case, inputs, recorded)
    return max(seen, key=lambda pair: pair[0])[1] if seen else inputs
