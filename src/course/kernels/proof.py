"""Proof of kernel: which kernels ran, and whether the result depends on what they computed.

Every call of a kernel, Metal or C++, passes its outputs through `called`. Counting alone can be cheated by a launch
whose result is thrown away; so `faulty` changes one number of what a kernel returns, and the final result must change.
Both work at the time of the call, on lazy arrays, and hold for all threads of the process."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import mlx.core as mx

_lock = threading.Lock()
_counts: list[Counter[str]] = []
_faults: list["_Fault"] = []


@dataclass(frozen=True, eq=False)
class _Fault:
    """Add `delta` to element `index` (of the flat array; -1 is the last) of what the kernel `name` returns first."""

    name: str
    index: int
    delta: float

    def apply(self, x: mx.array) -> mx.array:
        if not -x.size <= self.index < x.size:
            raise IndexError(f"a fault at element {self.index} of {self.name}: its output has {x.size}")
        hit = (mx.arange(x.size) == self.index % x.size).reshape(x.shape)
        changed = ~x if x.dtype == mx.bool_ else x + mx.array(self.delta).astype(x.dtype)
        return mx.where(hit, changed, x)


@contextmanager
def dispatches() -> Iterator[Counter[str]]:
    """Count the calls of each kernel by name, meanwhile. May be nested: each counter counts for itself."""
    counts: Counter[str] = Counter()
    with _lock:
        _counts.append(counts)
    try:
        yield counts
    finally:
        with _lock:
            _counts[:] = [other for other in _counts if other is not counts]


@contextmanager
def faulty(name: str, index: int = 0, delta: float = 8.0) -> Iterator[None]:
    """Let every call of the kernel `name`, meanwhile, return a first output with one wrong element.

    Integer outputs get the whole part of `delta`, booleans are inverted. Faults may be nested, and add up.
    A call whose output has no element `index` raises IndexError.
    """
    fault = _Fault(name, index, delta)
    with _lock:
        _faults.append(fault)
    try:
        yield
    finally:
        with _lock:
            _faults.remove(fault)


def called(name: str, outputs: object) -> object:
    """Note a call of the kernel `name`; returns its outputs (an array, or a list or tuple of them), or faulty ones."""
    if not (_counts or _faults):
        return outputs
    with _lock:
        for counts in _counts:
            counts[name] += 1
        faults = [fault for fault in _faults if fault.name == name]
    for fault in faults:
        outputs = _with_first(outputs, fault)
    return outputs


def _with_first(outputs: object, fault: _Fault) -> object:
    if isinstance(outputs, mx.array):
        return fault.apply(outputs)
    if isinstance(outputs, list | tuple) and outputs and isinstance(outputs[0], mx.array):
        return type(outputs)([fault.apply(outputs[0]), *outputs[1:]])
    raise TypeError(f"the kernel {fault.name} returned {type(outputs).__name__}: a fault needs an array to change")
