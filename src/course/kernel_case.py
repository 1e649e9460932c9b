"""What cases about kernels share: checked runs, the judgement of what they did, and the proof that a kernel was used.

`checked_run` and `proven_run` belong into `observe`: they return plain values. `judge`, `judge_traffic` and
`judge_proof` belong into `verify`.
"""

from collections.abc import Callable, Mapping, Sequence

import mlx.core as mx
import numpy as np

from course.compare import close
from course.kernels import checked, dispatches, faulty

Plain = dict[str, object]

_LEAST_CHANGE = 1e-3
"""What a wrong number of a kernel must change in the result, as a share of its largest value: far more than rounding,
or else a decoy could be added with a weight that no tolerance sees."""

SLACK = 2.0
"""How many times its formula a counter may reach: line sizes are model assumptions, and styles differ."""


def checked_run(work: Callable[[], mx.array]) -> Plain:
    """The result of `work` on the emulator's checked build and what its kernels did; on a Mac the GPU's result too."""
    with checked() as run:
        result = work()
        mx.eval(result)
    values: Plain = {"result": result, "launches": run.launches}
    if mx.metal.is_available():
        values["gpu"] = work()
    return values


def proven_run(work: Callable[[], mx.array], kernels: Sequence[str]) -> Plain:
    """The result of `work`, how often it called each kernel, and its result when one number of each kernel is wrong.

    For C++ and Metal kernels alike; Metal ones run in the emulator's fast build, or on the GPU.
    """
    with dispatches() as counts:
        result = work()
        mx.eval(result)
    disturbed = {}
    for kernel in kernels:
        with faulty(kernel):
            disturbed[kernel] = work()
    return {"result": result, "counts": dict(counts), "disturbed": disturbed}


def judge(
    values: Plain,
    want: np.ndarray,
    *,
    tol: float | None = None,
    dtype: mx.Dtype | None = None,
    suspects: Mapping[str, object] | None = None,
    what: str = "result",
) -> None:
    """Values equal to `want` (as `course.compare.close`), and nothing found by the checked run.

    What was found is told before wrong values: it is their cause more often than not.
    """

    def compare(got: mx.array, where: str) -> None:
        close(got, want, tol=tol, dtype=dtype, suspects=suspects, what=what + where)

    judge_with(values, compare)


def judge_with(values: Plain, compare: Callable[[mx.array, str], None]) -> None:
    """As `judge`, with a comparison of your own: `compare(result, where)` raises AssertionError.

    where: "", or on a Mac " on the GPU", to be put behind the name of what is compared.
    """
    if not values["launches"]:
        raise AssertionError("no Metal kernel was launched: the result comes from somewhere else")
    found = _findings(values)
    try:
        compare(values["result"], "")
    except AssertionError as error:
        raise AssertionError("\n".join([*found[:3], str(error)])) from None
    if found:
        raise AssertionError("\n".join(["the values are right, but the checked run found:", *found[:3]]))
    if "gpu" in values:
        compare(values["gpu"], " on the GPU")


def judge_traffic(values: Plain, kernel: str, most: Mapping[str, float], slack: float = SLACK) -> None:
    """Each counter of `most`, added over the launches of `kernel`, stays below `slack` times the number given."""
    launches = [launch for launch in values["launches"] if launch["kernel"] == kernel]
    if not launches:
        raise AssertionError(f"the kernel {kernel} was never launched: its wrapper must call it")
    for counter, formula in most.items():
        count = sum(launch["counters"][counter] for launch in launches)
        if count > slack * formula:
            name = counter.replace("_", " ")
            raise AssertionError(
                f"{kernel}: {count:,} {name}, expected about {formula:,.0f} and at most {slack * formula:,.0f}"
            )


def judge_proof(values: Plain, kernels: Sequence[str]) -> None:
    """Each kernel was called, and a wrong number in what it returns changes the result."""
    for kernel in kernels:
        if not values["counts"].get(kernel):
            raise AssertionError(f"the kernel {kernel} was never called: the result comes from somewhere else")
        result = _numbers(values["result"])
        change = np.abs(_numbers(values["disturbed"][kernel]) - result)
        if not (change > _LEAST_CHANGE * np.abs(result).max()).any():
            raise AssertionError(f"the result does not depend on what the kernel {kernel} returns: use its output")


def _numbers(array: mx.array) -> np.ndarray:
    return np.array(array.astype(mx.float32))


def _findings(values: Plain) -> list[str]:
    return [finding["message"] for launch in values["launches"] for finding in launch["findings"]]
