"""Pieces of work for kernels: the same one for a package's C++ kernel and for MLX's own operators in float32.

A decode step reads every weight once and none of them twice, so a work runs through several copies of its matrices,
together larger than the processor's caches. What it must compute and read at least is its cost.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mlx.core as mx
import numpy as np

from course.checkpoints import Shape
from course.variant import Variant

GROUP = 64
CACHED = 128_000_000  # bytes: several times the last cache of most processors
SEED = 0


Result = mx.array | Sequence[mx.array]


@dataclass(frozen=True)
class Work:
    """`ours(i)` and `mlx(i)` do it lazily with copy i of the matrices. flops, bytes: the least of ours, once."""

    name: str
    kernel: str
    ours: Callable[[int], Result]
    mlx: Callable[[int], Result]
    copies: tuple[int, int]
    flops: float
    bytes: float


class Matrices:
    """Copies of one random matrix (O, I): packed for the kernel, and unpacked in float32 for MLX."""

    def __init__(self, packed_matrix: type, O: int, I: int, most_copies: int):  # noqa: E741
        rng = np.random.default_rng(SEED)
        dense = mx.array(rng.standard_normal((O, I), dtype=np.float32) * I**-0.5).astype(mx.bfloat16)
        parts = mx.quantize(dense, group_size=GROUP, bits=4)
        wide = mx.dequantize(parts[0], *(part.astype(mx.float32) for part in parts[1:]), group_size=GROUP, bits=4)
        self.copies = tuple(
            min(most_copies, max(1, CACHED // n)) for n in (sum(part.nbytes for part in parts), wide.nbytes)
        )
        self.packed = [packed_matrix(*(_copy(part) for part in parts), GROUP, 4) for _ in range(self.copies[0])]
        self.dense = [_copy(wide) for _ in range(self.copies[1])]
        self.nbytes = self.packed[0].nbytes
        self.size = O * I


def products(variant: Variant, shape: Shape, rows: list[int], most_copies: int) -> list[Work]:
    """x W^T for the matrices of a block and the head, with each number of rows of x; the head with one row only."""
    multiply = variant.module("kernels.cpu").quantized_matmul
    packed_matrix = variant.module("kernels.quantize").PackedMatrix
    query = shape.heads * shape.head_dim
    sizes = {
        "q": (query, shape.hidden),
        "gate": (shape.intermediate, shape.hidden),
        "down": (shape.hidden, shape.intermediate),
        "head": (shape.vocab, shape.hidden),
    }
    works = []
    for name, (O, I) in sizes.items():  # noqa: E741
        w = Matrices(packed_matrix, O, I, most_copies)
        works += [_product(f"{name} {O} x {I}", multiply, w, M) for M in ([1] if name == "head" else rows)]
    return works


def attentions(variant: Variant, shape: Shape, sizes: list[tuple[int, int]]) -> list[Work]:
    """Causal attention of L queries, the last of S positions, for each (L, S)."""
    flash = variant.module("kernels.flash").cpu_flash_attention
    return [_attention(flash, shape, L, S) for L, S in sizes]


def difference(work: Work) -> float:
    """The largest difference between both results, relative to the largest number."""
    pairs = zip(_flat(work.ours(0)), _flat(work.mlx(0)), strict=True)
    return max(float(mx.abs(a - b).max() / mx.abs(b).max()) for a, b in pairs)


def run(one: Callable[[int], Result], copies: int) -> None:
    """The work with each copy, evaluated together, as the layers of a model are."""
    mx.eval([one(i) for i in range(copies)])


def _product(name: str, multiply: Callable[..., mx.array], w: Matrices, M: int) -> Work:
    O, I = w.packed[0].shape  # noqa: E741
    x = random_array((1, M, I))
    return Work(
        f"{name}, {M} rows" if M > 1 else name,
        "4-bit matrix product" if M > 1 else "4-bit matvec",
        lambda i: multiply(x, w.packed[i]),
        lambda i: x @ w.dense[i].T,
        w.copies,
        2.0 * M * w.size,
        w.nbytes + 4.0 * M * (O + I),
    )


def _attention(flash: Callable[..., mx.array], shape: Shape, L: int, S: int) -> Work:
    H, H_kv, D = shape.heads, shape.kv_heads, shape.head_dim
    capacity = 1 << S.bit_length()  # a view of a larger buffer, as a cache gives it
    layers = max(1, min(28, CACHED // (8 * H_kv * S * D)))
    q = random_array((1, H, L, D))
    caches = [tuple(random_array((1, H_kv, capacity, D))[:, :, :S] for _ in "kv") for _ in range(layers)]
    mx.eval(q, caches)
    seen = L * S - L * (L - 1) // 2
    return Work(
        f"{L} x {S}",
        "flash attention",
        lambda i: flash(q, *caches[i]),
        lambda i: mx.fast.scaled_dot_product_attention(q, *caches[i], scale=D**-0.5, mask="causal"),
        (layers, layers),
        4.0 * H * D * seen,
        8.0 * D * (H * L + H_kv * S),
    )


def _flat(result: Result) -> list[mx.array]:
    return [result] if isinstance(result, mx.array) else list(result)


def random_array(shape: tuple[int, ...]) -> mx.array:
    """Normal numbers in float32, evaluated."""
    x = mx.array(np.random.default_rng(SEED).standard_normal(shape, dtype=np.float32))
    mx.eval(x)
    return x


def _copy(x: mx.array) -> mx.array:
    copy = mx.array(np.array(x.view(mx.uint16) if x.dtype == mx.bfloat16 else x))
    return copy.view(x.dtype)
