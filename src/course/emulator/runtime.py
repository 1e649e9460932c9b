"""Runs compiled kernel libraries: the Python face of the runtime in `native/`.

Knows how to load a library, launch one of its kernels as a lazy MLX operation, and hand out what the launches found.
Knows nothing of Metal source: kernels come as shared objects, places as offsets into them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import mlx.core as mx

from course.build import ensure_built
from course.errors import CourseError

FOLDER = Path(__file__).parent
INCLUDE = FOLDER / "include"
MAX_THREADS = 1024
MAX_BUFFERS = 31
STEP_LIMIT = 300_000_000  # accesses and waits of one checked launch: a few seconds
TIME_LIMIT = 20.0  # seconds of CPU time of one launch
TRACE_DTYPE = [
    ("pc", "<u8"),
    ("offset", "<u4"),
    ("thread", "<u4"),
    ("size", "<u2"),
    ("write", "u1"),
    ("device", "u1"),
    ("buffer", "<i4"),
]

Size = tuple[int, int, int]
Source = tuple[str, int | bytes]  # ("input", 0), ("constant", 0), ("shape", 0), ("output", 0), ("bytes", b"...")


class Argument(NamedTuple):
    """One parameter of a kernel: `kind` is "buffer", "threadgroup" or the name of Metal's attribute."""

    kind: str
    index: int
    name: str


@dataclass(frozen=True)
class Finding:
    """One thing wrong with a kernel, at one place. `pc` and `other_pc` are return addresses, from the library's start;
    `file` and `line` are set where the place is known without them. Threads are linear indices in their threadgroup;
    -1 or 0 stand for what is not known."""

    kind: str
    fatal: bool
    count: int
    pc: int
    other_pc: int
    file: str
    line: int
    thread: int
    threadgroup: int
    other_thread: int
    other_threadgroup: int
    buffer: int
    name: str
    offset: int
    size: int
    note: str


@dataclass(frozen=True)
class Record:
    """One finished launch. `stopped`: a fatal finding ended it, and float outputs are NaN. `trace`: see TRACE_DTYPE."""

    tag: int
    kernel: str
    threads: Size
    threadgroup: Size
    checked: bool
    stopped: bool
    seconds: float
    findings: list[Finding]
    counters: dict[str, int]
    trace: bytes


class Library:
    """A compiled kernel library, loaded. It stays loaded until the process ends.

    Raises CourseError where it cannot be loaded, or the runtime cannot be built.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path).resolve()
        try:
            self.native = _native().load(str(self.path))
        except RuntimeError as error:
            raise CourseError(f"the compiled kernel does not load: {error}") from None

    @property
    def kernels(self) -> list[str]:
        """Host names, in the order of the source."""
        return self.native.kernels()

    @property
    def checked(self) -> bool:
        """Whether it was compiled to be checked."""
        return self.native.checked

    def arguments(self, kernel: str) -> list[Argument]:
        """The kernel's parameters. ValueError for an unknown kernel."""
        return [Argument(*argument) for argument in self.native.arguments(kernel)]


@dataclass(frozen=True)
class Limits:
    """When a launch that does not end is ended: accesses and waits (checked builds only), seconds of CPU time."""

    steps: int = STEP_LIMIT
    seconds: float = TIME_LIMIT


def launch(
    library: Library,
    kernel: str,
    *,
    inputs: Sequence[mx.array],
    bindings: Sequence[Source],
    output_shapes: Sequence[Sequence[int]],
    output_dtypes: Sequence[mx.Dtype],
    grid: Size,
    threadgroup: Size,
    init_value: float | None = None,
    threadgroup_bytes: Mapping[int, int] | None = None,
    ensure_row_contiguous: bool = True,
    order: int = 0,
    limits: Limits | None = None,
    trace: int | None = None,
    raise_on_fatal: bool = False,
    tag: int = 0,
    stream: mx.Stream | mx.Device | None = None,
) -> list[mx.array]:
    """One launch of `kernel` as a lazy operation: its outputs.

    `bindings[i]` says what [[buffer(i)]] is; `grid` is in threads, and threadgroups at its edge are smaller. `order`: 0
    forward, -1 reversed, a positive seed shuffles. `trace`: the threadgroup whose accesses are kept. With a `tag` other
    than 0 the launch leaves a Record for `take_records`.
    Raises ValueError for sizes, bindings or kernels that cannot be; a fatal finding raises RuntimeError when outputs
    are evaluated, where `raise_on_fatal` asks for it.
    """
    _check_sizes(grid, threadgroup)
    arguments = library.arguments(kernel)
    _check_bindings(arguments, bindings, threadgroup_bytes or {}, len(inputs), len(output_shapes))
    limits = limits or Limits()
    stream = stream if stream is not None else mx.default_stream(mx.cpu)
    if ensure_row_contiguous:
        inputs = [mx.contiguous(array, stream=stream) for array in inputs]
    names = {argument.index: argument.name for argument in arguments if argument.kind == "buffer"}
    return _native().launch(
        library=library.native,
        kernel=kernel,
        inputs=list(inputs),
        bindings=[_named(source, names.get(i, "")) for i, source in enumerate(bindings)],
        shapes=[list(shape) for shape in output_shapes],
        dtypes=list(output_dtypes),
        init_value=init_value,
        grid=grid,
        threadgroup=threadgroup,
        threadgroup_bytes=dict(threadgroup_bytes or {}),
        order=order,
        step_limit=limits.steps,
        time_limit=limits.seconds,
        trace=-1 if trace is None else trace,
        raise_on_fatal=raise_on_fatal,
        tag=tag,
        stream=stream,
    )


def take_records(tag: int | None = None) -> list[Record]:
    """What finished launches left, in the order in which they ran; of one tag, or all. A record is handed out once."""
    return [
        Record(**(fields | {"findings": [Finding(**finding) for finding in fields["findings"]]}))
        for fields in _native().take_records(tag)
    ]


def _named(source: Source, name: str) -> tuple[str, int, str, bytes]:
    kind, value = source
    return (kind, -1, name, value) if isinstance(value, bytes) else (kind, value, name, b"")


def _check_sizes(grid: Size, threadgroup: Size) -> None:
    if len(grid) != 3 or len(threadgroup) != 3:
        raise ValueError(f"grid {grid} and threadgroup {threadgroup} must have three sizes each")
    if min(grid) < 1 or max(grid) >= 1 << 32:
        raise ValueError(f"grid {grid}: every size must be at least 1 and below 2**32")
    threads = threadgroup[0] * threadgroup[1] * threadgroup[2]
    if min(threadgroup) < 1 or threads > MAX_THREADS:
        raise ValueError(f"threadgroup {threadgroup} has {threads} threads: it must have 1 to {MAX_THREADS}")
    groups = 1
    for size, step in zip(grid, threadgroup, strict=True):
        groups *= -(-size // step)
    if groups >= 1 << 24:
        raise ValueError(f"grid {grid} has {groups} threadgroups: the emulator takes up to {(1 << 24) - 1}")


def _check_bindings(
    arguments: list[Argument], bindings: Sequence[Source], lengths: Mapping[int, int], inputs: int, outputs: int
) -> None:
    if len(bindings) > MAX_BUFFERS:
        raise ValueError(f"{len(bindings)} buffers: a Metal kernel has at most {MAX_BUFFERS}")
    for kind, value in bindings:
        known = outputs if kind == "output" else inputs
        if isinstance(value, int) and not 0 <= value < known:
            raise ValueError(
                f"binding ({kind!r}, {value}): there are {known} {'out' if kind == 'output' else 'in'}puts"
            )
    for argument in arguments:
        if argument.kind == "unknown":
            raise ValueError(f"argument {argument.name}: the emulator does not know its attribute")
        if argument.kind == "buffer" and not 0 <= argument.index < len(bindings):
            raise ValueError(f"argument {argument.name}: nothing is bound to [[buffer({argument.index})]]")
        if argument.kind == "threadgroup" and argument.index not in lengths:
            raise ValueError(f"argument {argument.name}: [[threadgroup({argument.index})]] has no length")


@cache
def _native() -> ModuleType:
    """The runtime, built first if its sources have changed. Raises CourseError where it cannot be built."""
    path = ensure_built(FOLDER / "native", FOLDER, "_emulator")
    spec = spec_from_file_location("course.emulator._emulator", path)
    if spec is None or spec.loader is None:
        raise CourseError(f"{path} is not a Python module")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
