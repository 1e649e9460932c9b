"""A package's Metal kernels: one file each, run by MLX on a Mac's GPU and by the emulator anywhere else."""

import re
from collections.abc import Sequence
from pathlib import Path

import mlx.core as mx

from course.emulator import metal_kernel as emulated
from course.emulator.errors import KernelError
from course.emulator.session import current
from course.kernels import proof
from course.paths import extension_folder, package_folder

_LINE = re.compile(r"^[ \t]*#[ \t]*(?:line\b|\d)", re.MULTILINE)
_BODY = re.compile(r"^[ \t]*// kernel body[ \t]*$", re.MULTILINE)


class MetalKernel:
    """A kernel file of a package, called with the arguments of `mx.fast.metal_kernel`'s callable."""

    def __init__(
        self,
        package: str,
        name: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        helpers_of: str | None,
        ensure_row_contiguous: bool,
        atomic_outputs: bool,
    ) -> None:
        self.name = name
        self._package = package.partition(".")[0]
        self._helpers_of = helpers_of
        self._arguments = {
            "name": name,
            "input_names": list(inputs),
            "output_names": list(outputs),
            "ensure_row_contiguous": ensure_row_contiguous,
            "atomic_outputs": atomic_outputs,
        }
        self._kernels: dict[bool, object] = {}

    @property
    def path(self) -> Path:
        """Where the kernel's source is."""
        return self._file(self.name)

    def _file(self, name: str) -> Path:
        return extension_folder(package_folder(self._package)) / "metal" / f"{name}.metal"

    def __call__(self, **arguments: object) -> list[mx.array]:
        """The kernel's outputs, lazily. See `course.emulator.metal_kernel.EmulatedKernel` for the arguments.

        Raises KernelError for a file that is missing, is a stub, or that Metal would refuse.
        """
        on_gpu = current() is None and mx.metal.is_available()
        if on_gpu not in self._kernels:
            make = mx.fast.metal_kernel if on_gpu else emulated.metal_kernel
            header, source = split_source(self.path)
            if self._helpers_of:
                header = split_source(self._file(self._helpers_of))[0] + header
            self._kernels[on_gpu] = make(header=header, source=source, **self._arguments)
        return proof.called(self.name, self._kernels[on_gpu](**arguments))


def metal_kernel(
    package: str,
    name: str,
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    helpers_of: str | None = None,
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
) -> MetalKernel:
    """The kernel in `metal/NAME.metal` beside a package. package: `__package__` of the caller.

    inputs, outputs: the names that the body gives to its arrays. helpers_of: another kernel, whose helpers this one may
    use too. Files are read at the first call.
    """
    return MetalKernel(package, name, inputs, outputs, helpers_of, ensure_row_contiguous, atomic_outputs)


def split_source(path: Path) -> tuple[str, str]:
    """A kernel file's helpers and its body, each with a `#line` that keeps the file's own line numbers.

    Raises KernelError for a file that cannot be read, has not exactly one line `// kernel body`, or has `#line` itself.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KernelError(f"cannot read the kernel {path}: {getattr(error, 'strerror', error)}") from None
    if line := _LINE.search(text):
        number = text.count("\n", 0, line.start()) + 1
        raise KernelError(f"{path.name}:{number}: `#line` would make errors name the wrong place: delete it")
    marks = list(_BODY.finditer(text))
    if len(marks) != 1:
        raise KernelError(
            f"{path.name}:1: {len(marks)} lines `// kernel body`, must be one: helpers stand above it, the body below"
        )
    mark = marks[0]
    line = text.count("\n", 0, mark.end()) + 2
    helpers = f'#line 1 "{path.name}"\n{text[: mark.start()]}'
    return helpers, f'#line {line} "{path.name}"\n{text[mark.end() + 1 :]}'
