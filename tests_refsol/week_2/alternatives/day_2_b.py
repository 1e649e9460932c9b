# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 2 in another style: exact fractions, the checkpoint's shapes for a list of layers, NumPy for statistics."""

# file: kernels/roofline.py
from fractions import Fraction

import numpy as np

from ..model.checkpoint import expected_shapes


def weight_bytes(count: int, precision: Precision) -> float:
    """Exactly, then rounded once."""
    each = Fraction(precision.weight_bits, 8)
    if precision.group_size is not None:
        each += Fraction(4, precision.group_size)
    return float(count * each)


def matmul_cost(M: int, N: int, K: int, precision: Precision) -> Cost:
    """By the sizes of the three matrices."""
    inputs, matrix, outputs = M * K, N * K, M * N
    moved = precision.activation_bytes * (inputs + outputs)
    return Cost(2.0 * M * matrix, weight_bytes(matrix, precision) + moved)


def attention_cost(B: int, H: int, H_kv: int, L: int, S: int, D: int, precision: Precision) -> Cost:
    """By the mask itself."""
    if L > S:
        raise ValueError(f"L {L} exceeds S {S}")
    seen = int(np.tri(L, S, S - L, dtype=np.int64).sum())
    numbers = D * (B * H * L + B * H_kv * S + B * H_kv * S + B * H * L)
    return Cost(2 * (2 * D * seen) * B * H, numbers * precision.activation_bytes)


def model_cost(config: ModelConfig, B: int, L: int, S: int, precision: Precision) -> Cost:
    """Every matrix of the checkpoint is a linear layer; a tied table is also the head."""
    total = Cost(0.0, 0.0)
    for name, shape in expected_shapes(config).items():
        if "proj" in name:
            total = total + matmul_cost(B * L, shape[0], shape[1], precision)
    heads = config.num_attention_heads, config.num_key_value_heads
    for _ in range(config.num_hidden_layers):
        total = total + attention_cost(B, *heads, L, S, config.head_dim, precision)
    return total + matmul_cost(B, config.vocab_size, config.hidden_size, precision)


def lower_bound(cost: Cost, machine: Machine) -> float:
    """Below the ridge memory decides, above it arithmetic."""
    memory = cost.bytes / machine.bandwidth
    if cost.flops <= memory * machine.flops:
        return memory
    return cost.flops / machine.flops


def crossover_batch(machine: Machine, precision: Precision) -> float:
    """The ridge point, in FLOP per byte, over the FLOP that a row adds to a byte of weights."""
    ridge = machine.flops / machine.bandwidth
    return ridge / (2 / weight_bytes(1, precision))


def measure(
    work: Callable[[], object], *, warmup: int = 3, repeats: int = 10, clock: Callable[[], float] = time.perf_counter
) -> Timing:
    """An array of readings, filled from behind the warm-up."""
    if min(repeats - 1, warmup) < 0:
        raise ValueError(f"cannot measure {repeats} times after {warmup} runs")
    times = np.empty(repeats)
    mx.synchronize()
    for i in range(-warmup, repeats):
        begin = clock()
        mx.eval([work()])
        mx.synchronize()
        end = clock()
        if i >= 0:
            times[i] = end - begin
    return Timing(float(np.median(times)), float(times.min()), float(times.max()))
