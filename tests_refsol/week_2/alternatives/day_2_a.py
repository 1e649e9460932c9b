# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 2 in another style: costs are summed step by step, and a run is a function that returns its seconds."""


# file: kernels/roofline.py
def weight_bytes(count: int, precision: Precision) -> float:
    """Bits first, then bytes."""
    bits = count * precision.weight_bits
    if precision.group_size:
        bits += count / precision.group_size * (16 + 16)
    return bits / 8


def matmul_cost(M: int, N: int, K: int, precision: Precision) -> Cost:
    """One multiplication and one addition a term; what is read, what is written."""
    terms = M * N * K
    read = M * K * precision.activation_bytes + weight_bytes(K * N, precision)
    return Cost(flops=terms + terms, bytes=read + M * N * precision.activation_bytes)


def attention_cost(B: int, H: int, H_kv: int, L: int, S: int, D: int, precision: Precision) -> Cost:
    """Query by query."""
    if S < L:
        raise ValueError(f"S = {S} positions are fewer than L = {L} queries")
    pairs = sum(range(S - L + 1, S + 1))
    one_way = B * D * precision.activation_bytes
    return Cost(H * B * pairs * (D + D) * 2, one_way * H * L + one_way * H_kv * S * 2 + one_way * H * L)


def model_cost(config: ModelConfig, B: int, L: int, S: int, precision: Precision) -> Cost:
    """Layer after layer."""
    E, D = config.hidden_size, config.head_dim
    query, keys = config.num_attention_heads * D, config.num_key_value_heads * D
    total = matmul_cost(B, config.vocab_size, E, precision)
    for _ in range(config.num_hidden_layers):
        for out in (query, keys, keys, config.intermediate_size, config.intermediate_size):
            total = total + matmul_cost(B * L, out, E, precision)
        for into in (query, config.intermediate_size):
            total = total + matmul_cost(B * L, E, into, precision)
        total = total + attention_cost(B, config.num_attention_heads, config.num_key_value_heads, L, S, D, precision)
    return total


def lower_bound(cost: Cost, machine: Machine) -> float:
    """By the larger of the two times, sorted."""
    return sorted([cost.bytes / machine.bandwidth, cost.flops / machine.flops])[-1]


def crossover_batch(machine: Machine, precision: Precision) -> float:
    """Seconds to read a weight, over seconds to use it once."""
    return (weight_bytes(1, precision) / machine.bandwidth) / (2 / machine.flops)


def measure(
    work: Callable[[], object], *, warmup: int = 3, repeats: int = 10, clock: Callable[[], float] = time.perf_counter
) -> Timing:
    """Warm up apart, without the clock."""
    if warmup < 0:
        raise ValueError(f"warmup must not be negative: {warmup}")
    if repeats <= 0:
        raise ValueError(f"repeats must be positive: {repeats}")

    def run() -> None:
        mx.eval(work())
        mx.synchronize()

    def seconds() -> float:
        start = clock()
        run()
        return clock() - start

    mx.synchronize()
    for _ in range(warmup):
        run()
    readings = sorted(seconds() for _ in range(repeats))
    middle = readings[(repeats - 1) // 2 : repeats // 2 + 1]
    return Timing(median=sum(middle) / len(middle), least=readings[0], most=readings[-1])
