"""Small works for Metal kernels whose traffic is counted: what they read and write against what they must.

Time on the emulator says nothing about a GPU; which bytes a kernel asks for does not depend on where it runs.
"""

from collections.abc import Callable

import mlx.core as mx

from course.kernels import checked
from course.stub import stub_of
from course.variant import Variant

Work = Callable[[], tuple[mx.array, int]]


def traffic(variant: Variant) -> dict[str, dict[str, float] | str]:
    """For each kernel the bytes it moved and must move, and bank conflicts; or which task is still to be written."""
    found: dict[str, dict[str, float] | str] = {}
    for name, work in _works(variant).items():
        try:
            with checked() as run:
                out, least = work()
                mx.eval(out)
        except Exception as error:
            if stub := stub_of(error):
                found[name] = stub.text
                continue
            raise
        total = {"moved": 0, "bank_conflicts": 0}
        for launch in run.launches:
            counters = launch["counters"]
            total["moved"] += counters["device_read_bytes"] + counters["device_write_bytes"]
            total["bank_conflicts"] += counters["bank_conflicts"]
        found[name] = total | {"least": least}
    return found


def _works(variant: Variant) -> dict[str, Work]:
    """Each gives the lazy result and the bytes of every input and of the result, counted once."""
    metal, matmul, flash = (variant.module(f"kernels.{name}") for name in ("metal", "metal_matmul", "metal_flash"))
    packed_matrix = variant.module("kernels.quantize").PackedMatrix
    x, row, tokens = _wave(16, 1024), _wave(1, 512), _wave(64, 512)
    w = packed_matrix(*mx.quantize(_wave(512, 512), group_size=64, bits=4), 64, 4)
    heads, angles = _wave(8 * 16, 64).reshape(1, 8, 16, 64), _wave(16, 32)
    q, k = _wave(8, 64).reshape(1, 8, 1, 64), _wave(2 * 128, 64).reshape(1, 2, 128, 64)
    many = _wave(8 * 64, 64).reshape(1, 8, 64, 64)

    def work(call: Callable[..., mx.array], *inputs: mx.array, **more: float) -> Work:
        def run() -> tuple[mx.array, int]:
            out = call(*inputs, **more)
            return out, out.nbytes + sum(one.nbytes for one in inputs)

        return run

    return {
        "add": work(metal.add, x, x),
        "rms_norm": work(metal.rms_norm, x, x[0], eps=1e-6),
        "rope": work(metal.rope, heads, angles, angles),
        "swiglu": work(metal.swiglu, x, x),
        "quantized_matvec": work(matmul.quantized_matvec, row, w),
        "split_k_matvec": work(matmul.split_k_matvec, row, w, splits=4),
        "quantized_matmul": work(matmul.quantized_matmul, tokens, w),
        "flash_decode": work(flash.metal_flash_attention, q, k, k),
        "flash_prefill": work(flash.metal_flash_attention, many, k, k),
    }


def _wave(rows: int, columns: int) -> mx.array:
    return mx.sin(mx.arange(rows * columns, dtype=mx.float32)).reshape(rows, columns)
