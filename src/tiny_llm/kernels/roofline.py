# This file is yours to edit. Read book/src/week2-02-roofline.md.
"""What an operation costs, how fast a machine could do it, and how long it really took.

Counts are closed forms: multiplications and additions, and bytes that must cross the memory bus at least once.
After Williams, Waterman and Patterson (2009), "Roofline".
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from ..model.config import ModelConfig


# ANCHOR: types
@dataclass(frozen=True)
class Cost:
    """Work of an operation: `flops` multiplications and additions, `bytes` to and from memory."""

    flops: float
    bytes: float

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.flops + other.flops, self.bytes + other.bytes)

    def __mul__(self, times: int) -> "Cost":
        return Cost(self.flops * times, self.bytes * times)

    @property
    def intensity(self) -> float:
        """FLOP per byte."""
        return self.flops / self.bytes


@dataclass(frozen=True)
class Machine:
    """The ceilings of a machine: `flops` in FLOP/s, `bandwidth` of its memory in bytes/s."""

    flops: float
    bandwidth: float


@dataclass(frozen=True)
class Precision:
    """How numbers are stored. activation_bytes: of one activation, key or value.

    weight_bits: of one weight. group_size: weights that share a 16-bit scale and a 16-bit bias; None for weights
    that are not packed.
    """

    weight_bits: int
    activation_bytes: int
    group_size: int | None = None


FLOAT32 = Precision(32, 4)
BFLOAT16 = Precision(16, 2)
PACKED4 = Precision(4, 2, 64)


@dataclass(frozen=True)
class Timing:
    """Seconds: the median of the readings, the least and the most."""

    median: float
    least: float
    most: float
    # ANCHOR_END: types


def weight_bytes(count: int, precision: Precision) -> float:
    """Bytes of `count` weights: weight_bits / 8 each, and 4 for each group of group_size (scale and bias)."""
    raise NotImplementedError("Week 2 Day 2 Task 1: weight_bytes - see book/src/week2-02-roofline.md#task-1")


def matmul_cost(M: int, N: int, K: int, precision: Precision) -> Cost:
    """A linear layer: M rows of K activations times N*K weights. M = 1 is a matrix-vector product.

    flops: a multiplication and an addition for each of the M*N*K products.
    bytes: activations in (M, K) and out (M, N) once, weights (N, K) once whatever M is. No bias.
    """
    raise NotImplementedError("Week 2 Day 2 Task 1: matmul_cost - see book/src/week2-02-roofline.md#task-1")


def attention_cost(B: int, H: int, H_kv: int, L: int, S: int, D: int, precision: Precision) -> Cost:
    """Causal attention of B sequences: H query heads of L queries, the last of S positions, on H_kv KV heads.

    flops: 2*D for the score and 2*D for the weighted value of each query and key it may see; query i sees
    S - L + i + 1 keys, i from 0. Softmax is not counted.
    bytes: queries in and results out once for each query head; keys and values once for each KV head. The scores
    stay on the chip.
    Raises ValueError where L > S.
    """
    raise NotImplementedError("Week 2 Day 2 Task 1: attention_cost - see book/src/week2-02-roofline.md#task-1")


def model_cost(config: ModelConfig, B: int, L: int, S: int, precision: Precision) -> Cost:
    """One run of the model: B sequences, each L new tokens, the last of S. L = 1 is a decode step, L = S a prefill.

    Counts q, k, v, o, gate, up and down projections and attention of each layer, and the head on the last position
    of each sequence. Not counted: norms, RoPE, SiLU, residual sums, the few embedding rows, softmax.
    """
    raise NotImplementedError("Week 2 Day 2 Task 2: model_cost - see book/src/week2-02-roofline.md#task-2")


def lower_bound(cost: Cost, machine: Machine) -> float:
    """Seconds below which `machine` cannot do `cost`: arithmetic and memory work at once, the slower one decides."""
    raise NotImplementedError("Week 2 Day 2 Task 2: lower_bound - see book/src/week2-02-roofline.md#task-2")


def crossover_batch(machine: Machine, precision: Precision) -> float:
    """Rows M from which a large linear layer takes longer to compute than its weights take to read.

    Activations are left out. So M * 2 FLOP for each weight take as long as its bytes.
    """
    raise NotImplementedError("Week 2 Day 2 Task 2: crossover_batch - see book/src/week2-02-roofline.md#task-2")


def measure(
    work: Callable[[], object], *, warmup: int = 3, repeats: int = 10, clock: Callable[[], float] = time.perf_counter
) -> Timing:
    """Time `work`, which returns arrays, or any tree of them, or None.

    Waits for what was started earlier, runs `work` `warmup` times, then `repeats` times measured. The clock is read
    right before a run, and again when everything that it asked of the device is done: its result is evaluated, and
    whatever else it started is waited for.
    Returns the clock's seconds. The median of an even number of readings is the mean of the two in the middle.
    Raises ValueError, before anything runs, for repeats below 1 or a negative warmup.
    """
    raise NotImplementedError("Week 2 Day 2 Task 3: measure - see book/src/week2-02-roofline.md#task-3")
