"""Plausible wrong solutions of Week 2 Day 2, and the case that catches each."""

from course.mutants import Mutant

ROOFLINE = "kernels/roofline.py"


def mutant(task: int, killer: str, old: str):
    """Makes mutants that change the same place and die by the same case."""

    def make(name: str, new: str, message: str, killer: str = killer) -> Mutant:
        return Mutant(name, task, ROOFLINE, old, new, message, killer)

    return make


weight = mutant(1, "WeightBytesIncludeTheScales", "return count * per_weight")
group = mutant(1, "WeightBytesIncludeTheScales", "per_weight += 4 / precision.group_size")
matmul_flops = mutant(1, "MatmulCostCountsEachByteOnce", "return Cost(2 * M * N * K, ")
activations = mutant(1, "MatmulCostCountsEachByteOnce", "activations = (M * K + M * N) * precision.activation_bytes")
weights = mutant(1, "MatmulCostCountsEachByteOnce", "activations + weight_bytes(N * K, precision))")
visible = mutant(1, "AttentionCostIsCausal", "visible = L * S - L * (L - 1) // 2")
attend_flops = mutant(1, "AttentionCostIsCausal", "return Cost(4 * B * H * D * visible, ")
rows = mutant(1, "AttentionCostIsCausal", "rows = 2 * B * (H * L + H_kv * S)")
row_bytes = mutant(1, "AttentionCostIsCausal", "rows * D * precision.activation_bytes)")

_OPERATIONS = [
    weight("bits", "return count * per_weight * 8", "bits were counted, not bytes"),
    weight("like-activations", "return count * precision.activation_bytes", "activations were counted"),
    group("no-scales", "per_weight += 0", "the scales and biases were left out"),
    group("no-biases", "per_weight += 2 / precision.group_size", "but not the biases"),
    group("wide-scales", "per_weight += 8 / precision.group_size", "taken to be 32-bit numbers"),
    group("scale-per-weight", "per_weight += 4", "a scale and a bias of its own"),
    matmul_flops("no-additions", "return Cost(M * N * K, ", "counted as one"),
    matmul_flops("one-row", "return Cost(2 * N * K, ", "one row was counted"),
    activations("no-inputs", "activations = M * N * precision.activation_bytes", "the inputs were not read"),
    activations("no-results", "activations = M * K * precision.activation_bytes", "the results were not written"),
    activations(
        "no-reuse",
        "activations = (M * K * N + M * N) * precision.activation_bytes",
        "the inputs were read again for each result",
    ),
    weights("weights-per-row", "activations + M * weight_bytes(N * K, precision))", "read again for each row"),
    weights("no-weights", "activations)", "the weights were not read"),
    weights("only-weights", "weight_bytes(N * K, precision))", "only the weights were counted"),
    weights(
        "weights-like-activations",
        "activations + N * K * precision.activation_bytes)",
        "weights were counted like activations",
    ),
    visible("not-causal", "visible = L * S", "attention is causal"),
    visible("first-positions", "visible = L * (L + 1) // 2", "the first of the positions"),
    visible("not-itself", "visible = L * S - L * (L + 1) // 2", "its own key"),
    attend_flops("only-scores", "return Cost(2 * B * H * D * visible, ", "only the scores were counted"),
    attend_flops("kv-heads", "return Cost(4 * B * H_kv * D * visible, ", "KV heads were counted"),
    attend_flops("one-sequence", "return Cost(4 * H * D * visible, ", "one sequence was counted"),
    rows("keys-per-query-head", "rows = 2 * B * (H * L + H * S)", "read again for each query head"),
    rows("keys-per-query", "rows = 2 * B * (H * L + H_kv * S * L)", "read again for each query"),
    rows("only-new-keys", "rows = 2 * B * (H * L + H_kv * L)", "only L keys and values were read"),
    rows("no-values", "rows = B * (2 * H * L + H_kv * S)", "only the keys were read"),
    rows("no-output", "rows = B * (H * L + 2 * H_kv * S)", "the results were not written"),
    rows("only-keys-and-values", "rows = 2 * B * H_kv * S", "the queries and results were left out"),
    row_bytes("in-numbers", "rows * D)", "numbers were counted, not bytes"),
    row_bytes(
        "scores-in-memory",
        "(rows * D + 2 * B * H * L * S) * precision.activation_bytes)",
        "the scores went through memory",
    ),
    Mutant(
        "too-many-queries",
        1,
        ROOFLINE,
        "    if L > S:\n",
        "    if False:\n",
        "was not refused",
        "QueriesBeyondTheContextAreRefused",
    ),
]

bound = mutant(2, "TheSlowerClockDecides", "return max(cost.flops / machine.flops, cost.bytes / machine.bandwidth)")
products = mutant(
    2,
    "ModelCostIsTheSumOfItsLayers",
    "[(H * D, E), (H_kv * D, E), (H_kv * D, E), (E, H * D), (I, E), (I, E), (E, I)]",
)
layers = mutant(2, "ModelCostIsTheSumOfItsLayers", "return layer * config.num_hidden_layers + ")
head = mutant(2, "ModelCostIsTheSumOfItsLayers", " + matmul_cost(B, config.vocab_size, E, precision)")
attend = mutant(2, "ModelCostIsTheSumOfItsLayers", "layer = attention_cost(B, H, H_kv, L, S, D, precision)")
product = mutant(2, "ModelCostIsTheSumOfItsLayers", "layer += matmul_cost(B * L, N, K, precision)")
crossover = mutant(
    2,
    "CrossoverIsWhereBothClocksAgree",
    "return machine.flops / machine.bandwidth * weight_bytes(1, precision) / 2",
)

_MODEL = [
    bound("added", "return cost.flops / machine.flops + cost.bytes / machine.bandwidth", "the two were added"),
    bound(
        "the-faster",
        "return min(cost.flops / machine.flops, cost.bytes / machine.bandwidth)",
        "the faster one was taken",
    ),
    bound("only-memory", "return cost.bytes / machine.bandwidth", "only memory was counted"),
    bound("only-arithmetic", "return cost.flops / machine.flops", "only arithmetic was counted"),
    products(
        "kv-as-queries",
        "[(H * D, E), (H * D, E), (H * D, E), (E, H * D), (I, E), (I, E), (E, I)]",
        "as many heads as queries",
    ),
    products(
        "two-in-the-mlp",
        "[(H * D, E), (H_kv * D, E), (H_kv * D, E), (E, H * D), (I, E), (E, I)]",
        "two matrices, not three",
    ),
    products(
        "no-output-projection",
        "[(H * D, E), (H_kv * D, E), (H_kv * D, E), (I, E), (I, E), (E, I)]",
        "the output projection was left out",
    ),
    layers("one-layer", "return layer + ", "one layer was counted"),
    head("no-head", "", "the head was left out"),
    head("head-everywhere", " + matmul_cost(B * L, config.vocab_size, E, precision)", "on every position"),
    attend("no-attention", "layer = Cost(0, 0)", "attention was left out"),
    attend(
        "no-context",
        "layer = attention_cost(B, H, H_kv, L, L, D, precision)",
        "only the new tokens were attended to",
    ),
    attend(
        "head-dim-guessed",
        "D = E // H\n    layer = attention_cost(B, H, H_kv, L, S, D, precision)",
        "hidden_size / heads was taken for head_dim",
    ),
    product("one-sequence-run", "layer += matmul_cost(L, N, K, precision)", "counted for one sequence"),
    product(
        "weights-per-sequence",
        "layer += matmul_cost(L, N, K, precision) * B",
        "bytes that two more bytes a weight cost",
        "ADecodeStepReadsEveryMatrixOnce",
    ),
    crossover(
        "one-flop-a-weight",
        "return machine.flops / machine.bandwidth * weight_bytes(1, precision)",
        "counted as one",
    ),
    crossover("balance", "return machine.flops / machine.bandwidth", "the size of a weight was left out"),
    crossover(
        "scales-free",
        "return machine.flops / machine.bandwidth * precision.weight_bits / 16",
        "the scales and biases were left out",
    ),
    crossover(
        "upside-down",
        "return 2 * machine.bandwidth / machine.flops / weight_bytes(1, precision)",
        "the ratio is upside down",
    ),
]

CHECK = "    if repeats < 1 or warmup < 0:\n"
BEFORE = "    mx.synchronize()\n    readings = []\n"
RUN = """        start = clock()
        mx.eval(work())
        mx.synchronize()
        readings.append(clock() - start)
"""
MEASURED = "measured = readings[warmup:]"

median = mutant(3, "TimingIsTheMedianAndTheEnds", "Timing(statistics.median(measured), min(measured), max(measured))")
run = mutant(3, "EvaluatesInsideTheClock", RUN)

_TIMING = [
    median("mean", "Timing(statistics.mean(measured), min(measured), max(measured))", "the mean was taken"),
    median("best", "Timing(min(measured), min(measured), max(measured))", "the least was taken for the median"),
    median(
        "upper-middle",
        "Timing(statistics.median_high(measured), min(measured), max(measured))",
        "the upper of the two in the middle",
    ),
    median(
        "unsorted",
        "Timing(measured[len(measured) // 2], min(measured), max(measured))",
        "the readings were not sorted",
    ),
    median(
        "swapped",
        "Timing(statistics.median(measured), max(measured), min(measured))",
        "least and most were swapped",
    ),
    Mutant(
        "warm-up-measured",
        3,
        ROOFLINE,
        MEASURED,
        "measured = readings",
        "the warm-up runs were measured too",
        "TimingIsTheMedianAndTheEnds",
    ),
    Mutant(
        "no-warm-up",
        3,
        ROOFLINE,
        "for _ in range(warmup + repeats):",
        "for _ in range(repeats):",
        "warm-up runs and",
        "TimingIsTheMedianAndTheEnds",
    ),
    run("not-evaluated", RUN.replace("mx.eval(work())", "work()"), "was not evaluated"),
    run(
        "evaluated-too-late",
        """        start = clock()
        result = work()
        readings.append(clock() - start)
        mx.eval(result)
        mx.synchronize()
""",
        "was not evaluated",
    ),
    run(
        "not-waited-for",
        RUN.replace("mx.eval", "mx.async_eval").replace("        mx.synchronize()\n", ""),
        "was not evaluated",
    ),
    run(
        "warm-up-not-evaluated",
        RUN.replace(
            "mx.eval(work())", "result = work()\n        if len(readings) >= warmup:\n            mx.eval(result)"
        ),
        "nothing was warmed up",
    ),
    run(
        "not-synchronised",
        RUN.replace("        mx.synchronize()\n", ""),
        "nobody synchronised",
        "WaitsForWhatWasStarted",
    ),
    Mutant("begins-busy", 3, ROOFLINE, BEFORE, "    readings = []\n", "it was measured", "WorkFromBeforeIsNotMeasured"),
    run(
        "milliseconds",
        RUN.replace("clock() - start", "(clock() - start) * 1000"),
        "expected seconds",
        "SecondsByDefault",
    ),
    Mutant("no-repeats", 3, ROOFLINE, CHECK, "    if warmup < 0:\n", "was not refused", "BadCountsAreRefused"),
    Mutant("negative-warm-up", 3, ROOFLINE, CHECK, "    if repeats < 1:\n", "was not refused", "BadCountsAreRefused"),
]

MUTANTS = _OPERATIONS + _MODEL + _TIMING
