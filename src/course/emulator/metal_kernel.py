"""`metal_kernel` for machines without Metal: called like MLX's, run by the emulator."""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import mlx.core as mx

from course.emulator import cache
from course.emulator.errors import KernelError
from course.emulator.runtime import Library, Limits, launch
from course.emulator.session import Buffer, Launch, Session, current, new_tag
from course.emulator.signature import Signature, Template, Text, signature

CHECKED_SECONDS = 8.0  # of CPU time for one checked launch, which should take less than one

Scalar = bool | int | float
Grid = tuple[int, int, int]
_LINE = re.compile(r'^\s*#line \d+ "(.*)"', re.MULTILINE)


@dataclass(frozen=True)
class Sizes:
    """How large a launch is, and its outputs."""

    shapes: list[tuple[int, ...]]
    dtypes: list[mx.Dtype]
    grid: Grid
    threadgroup: Grid


class EmulatedKernel:
    """What `metal_kernel` returns: a function from arrays to arrays."""

    def __init__(self, text: Text, ensure_row_contiguous: bool) -> None:
        self._text = text
        self._ensure_row_contiguous = ensure_row_contiguous
        files = _LINE.findall(text.header + "\n" + text.source)
        self._own = frozenset([text.name, f"{text.name} (header)", *files])
        self._libraries: dict[tuple[str, bool], Library] = {}

    def __call__(
        self,
        *,
        inputs: Sequence[Scalar | mx.array],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[mx.Dtype],
        grid: Grid,
        threadgroup: Grid,
        template: Template | None = None,
        init_value: float | None = None,
        verbose: bool = False,
        stream: mx.Stream | mx.Device | None = None,
    ) -> list[mx.array]:
        """Run the kernel, when its outputs are evaluated.

        The arguments are those of the callable that `mx.fast.metal_kernel` returns. Raises ValueError for a wrong
        number of inputs or outputs and TypeError for a template argument that is no dtype, int or bool, as MLX does;
        KernelError, with file and line, for a source that Metal would refuse.
        """
        arrays = [value if isinstance(value, mx.array) else mx.array(value) for value in inputs]
        self._check_counts(len(arrays), len(output_shapes), len(output_dtypes))
        _check_template(template or ())
        written = signature(self._text, arrays, output_dtypes, template or ())
        if verbose:
            print(f"Generated source code for `{self._text.name}`:\n```\n{written.source}\n```")
        sizes = Sizes([tuple(shape) for shape in output_shapes], list(output_dtypes), tuple(grid), tuple(threadgroup))
        return self._launch(arrays, written, sizes, init_value, stream)

    def _launch(
        self,
        inputs: list[mx.array],
        written: Signature,
        sizes: Sizes,
        init_value: float | None,
        stream: mx.Stream | mx.Device | None,
    ) -> list[mx.array]:
        session = current()
        library = self._library(written.source, session is not None and session.checked)
        return launch(
            library,
            written.function,
            inputs=inputs,
            bindings=list(written.bindings),
            output_shapes=sizes.shapes,
            output_dtypes=sizes.dtypes,
            init_value=init_value,
            grid=sizes.grid,
            threadgroup=sizes.threadgroup,
            ensure_row_contiguous=self._ensure_row_contiguous,
            limits=Limits(seconds=CHECKED_SECONDS) if library.checked else None,
            trace=session.trace if session else None,
            raise_on_fatal=session is None,
            tag=self._note(session, library, written, inputs, sizes),
            stream=stream or mx.cpu,
        )

    def _note(
        self, session: Session | None, library: Library, written: Signature, inputs: list[mx.array], sizes: Sizes
    ) -> int:
        """Tell the session of a launch; its tag, 0 without a session."""
        if session is None:
            return 0
        tag = new_tag()
        buffers = []
        for kind, index in written.bindings:
            if kind == "output":
                size = sizes.dtypes[index].size
                buffers.append(Buffer(self._text.outputs[index], prod(sizes.shapes[index]) * size, size))
            elif kind in ("input", "constant"):
                buffers.append(Buffer(self._text.inputs[index], inputs[index].nbytes, inputs[index].itemsize))
            else:  # shape, strides or ndim
                size = 8 if kind == "strides" else 4
                count = 1 if kind == "ndim" else inputs[index].ndim
                buffers.append(Buffer(f"{self._text.inputs[index]}_{kind}", size * count, size))
        name = self._text.name
        session.launches.append(Launch(tag, name, library.path, written.source, self._own, tuple(buffers)))
        return tag

    def _check_counts(self, inputs: int, shapes: int, dtypes: int) -> None:
        counts = {"inputs": (self._text.inputs, inputs), "output_shapes": (self._text.outputs, shapes)}
        counts["output_dtypes"] = (self._text.outputs, dtypes)
        for argument, (names, count) in counts.items():
            if len(names) != count:
                raise ValueError(
                    f"[metal_kernel] Expected `{argument}` to have size {len(names)} ({', '.join(names)}) "
                    f"but got size {count}."
                )

    def _library(self, source: str, checked: bool) -> Library:
        key = (source, checked)
        if key not in self._libraries:
            self._libraries[key] = _load(cache.build(source, checked, self._own))
        return self._libraries[key]


def metal_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    compile_options: dict[str, str] | None = None,
) -> EmulatedKernel:
    """A kernel from the body of a Metal function: the emulator's counterpart of `mx.fast.metal_kernel`.

    Nothing is compiled before the first call. `compile_options` are accepted and change nothing: the emulator's
    arithmetic is always IEEE. Raises ValueError where there is no output, KernelError for a name that is none.
    """
    if not output_names:
        raise ValueError("[metal_kernel] Must specify at least one output.")
    for word in (name, *input_names, *output_names):
        if not re.fullmatch(r"[A-Za-z_]\w*", word):
            raise KernelError(f"{word!r} cannot be a name in Metal: use letters, digits and underscores")
    text = Text(name, tuple(input_names), tuple(output_names), source, header, atomic_outputs)
    return EmulatedKernel(text, ensure_row_contiguous)


@functools.cache
def _load(path: Path) -> Library:
    """A library can be loaded once, however many kernels have the same source."""
    return Library(path)


def _check_template(template: Template) -> None:
    for _, value in template:
        if not isinstance(value, bool | int | mx.Dtype):
            raise TypeError(
                f"[metal_kernel] Invalid template argument {value!r}. Must be `mlx.core.Dtype`, `int` or `bool`."
            )
