"""The kernel function that MLX writes around a body: parameters, thread attributes, template arguments."""

from collections.abc import Sequence
from dataclasses import dataclass

import mlx.core as mx

from course.emulator.errors import KernelError

Template = Sequence[tuple[str, bool | int | mx.Dtype]]
BEFORE_BODY, AFTER_BODY = "generated signature", "generated end"

TYPES = {
    mx.bool_: "bool",
    mx.uint8: "uint8_t",
    mx.uint16: "uint16_t",
    mx.uint32: "uint32_t",
    mx.uint64: "uint64_t",
    mx.int8: "int8_t",
    mx.int16: "int16_t",
    mx.int32: "int32_t",
    mx.int64: "int64_t",
    mx.float16: "float16_t",
    mx.bfloat16: "bfloat16_t",
    mx.float32: "float",
}

# The names that a body may use without declaring them, as in mx.fast.metal_kernel.
THREAD_ATTRIBUTES = {
    "dispatch_quadgroups_per_threadgroup": "uint",
    "dispatch_simdgroups_per_threadgroup": "uint",
    "dispatch_threads_per_threadgroup": "uint3",
    "grid_origin": "uint3",
    "grid_size": "uint3",
    "quadgroup_index_in_threadgroup": "uint",
    "quadgroups_per_threadgroup": "uint",
    "simdgroup_index_in_threadgroup": "uint",
    "simdgroups_per_threadgroup": "uint",
    "thread_execution_width": "uint",
    "thread_index_in_quadgroup": "uint",
    "thread_index_in_simdgroup": "uint",
    "thread_index_in_threadgroup": "uint",
    "thread_position_in_grid": "uint3",
    "thread_position_in_threadgroup": "uint3",
    "threadgroup_position_in_grid": "uint3",
    "threadgroups_per_grid": "uint3",
    "threads_per_grid": "uint3",
    "threads_per_simdgroup": "uint",
    "threads_per_threadgroup": "uint3",
}

CONSTANT_SIZE = 8  # inputs with fewer elements are passed in constant memory
_PREFIX = '#include "mlx/backend/metal/kernels/utils.h"\nusing namespace metal;\n'


@dataclass(frozen=True)
class Text:
    """What the author of a kernel wrote, and the name that errors give to it."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    source: str
    header: str
    atomic_outputs: bool


@dataclass(frozen=True)
class Signature:
    """A complete Metal source for inputs of certain shapes and types, and what each of its buffers holds."""

    source: str
    function: str
    bindings: tuple[tuple[str, int], ...]


def signature(
    text: Text, inputs: Sequence[mx.array], output_dtypes: Sequence[mx.Dtype], template: Template
) -> Signature:
    """Write the function around the body. Raises KernelError for a type that Metal does not have."""
    params: list[str] = []
    bindings: list[tuple[str, int]] = []

    def add(declaration: str, kind: str, index: int) -> None:
        params.append(f"  {declaration} [[buffer({len(bindings)})]]")
        bindings.append((kind, index))

    for index, (name, array) in enumerate(zip(text.inputs, inputs, strict=True)):
        small = array.size < CONSTANT_SIZE
        pointer = "*" if array.ndim else "&"
        add(f"const {'constant' if small else 'device'} {_type(array.dtype)}{pointer} {name}", _kind(small), index)
        for suffix, declaration in _EXTRAS.items():
            if array.ndim and name + suffix in text.source:
                add(declaration.format(name + suffix), suffix[1:], index)
    for index, (name, dtype) in enumerate(zip(text.outputs, output_dtypes, strict=True)):
        element = f"atomic<{_type(dtype)}>" if text.atomic_outputs else _type(dtype)
        add(f"device {element}* {name}", "output", index)
    params += [f"  {kind} {name} [[{name}]]" for name, kind in THREAD_ATTRIBUTES.items() if name in text.source]
    function = f"custom_kernel_{text.name}"
    return Signature(_source(text, function, params, template), function, tuple(bindings))


_EXTRAS = {
    "_shape": "const constant int* {0}",
    "_strides": "const constant int64_t* {0}",
    "_ndim": "const constant int& {0}",
}


def _kind(small: bool) -> str:
    return "constant" if small else "input"


def _source(text: Text, function: str, params: list[str], template: Template) -> str:
    head, instance = "", ""
    if template:
        words = ", ".join(f"{_template_kind(value)} {name}" for name, value in template)
        values = f"{function}<{', '.join(_template_value(value) for _, value in template)}>"
        head = f"template <{words}>\n"
        instance = f'template [[host_name("{function}")]] [[kernel]] decltype({values}) {values};\n'
    before, after = (f'\n#line 1 "{name}"\n' for name in (BEFORE_BODY, AFTER_BODY))
    return (
        f"{before}{_PREFIX}"
        f'#line 1 "{text.name} (header)"\n{text.header}\n'
        f"{before}{head}[[kernel]] void {function}(\n" + ",\n".join(params) + ") {\n"
        f'#line 1 "{text.name}"\n{text.source}\n'
        f"{after}}}\n{instance}"
    )


def _type(dtype: mx.Dtype) -> str:
    if dtype not in TYPES:
        raise KernelError(f"kernels take no {dtype}: use one of {', '.join(str(known) for known in TYPES)}")
    return TYPES[dtype]


def _template_kind(value: bool | int | mx.Dtype) -> str:
    if isinstance(value, mx.Dtype):
        return "typename"
    return "bool" if isinstance(value, bool) else "int"


def _template_value(value: bool | int | mx.Dtype) -> str:
    return _type(value) if isinstance(value, mx.Dtype) else str(value).lower()
