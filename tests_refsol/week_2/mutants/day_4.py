"""Plausible wrong solutions of Week 2 Day 4, and the case that catches each.

Those in C++ are compiled, so they stand in files that compile quickly wherever there is a choice."""

from course.mutants import Mutant

SRC = "extensions/src/"
CPU = "kernels/cpu.py"


def primitive(name: str, old: str, new: str, message: str, killer: str, file: str = "quantized_matmul.cpp") -> Mutant:
    return Mutant(name, 1, SRC + file, old, new, message, killer)


def scalar(name: str, old: str, new: str, message: str, killer: str = "ScalarProductMatchesFloat64") -> Mutant:
    return Mutant(name, 1, SRC + "qmv.cpp", old, new, message, killer)


def vector(name: str, old: str, new: str, message: str, killer: str = "VectorProductMatchesFloat64") -> Mutant:
    return Mutant(name, 2, SRC + "qmv.cpp", old, new, message, killer)


def blocked(name: str, old: str, new: str, message: str, killer: str = "BlockedProductMatchesFloat64") -> Mutant:
    return Mutant(name, 3, SRC + "qmm.cpp", old, new, message, killer)


def threads(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 4, SRC + "threads.cpp", old, new, message, killer)


def mlp(name: str, old: str, new: str, message: str, killer: str = "FusedMlpMatchesFloat64") -> Mutant:
    return Mutant(name, 5, SRC + "fused.cpp", old, new, message, killer)


DISPATCH = "run_on_stream(stream(), inputs, outputs, compute);"
READ = "const ReadRow read = [&x](int64_t token, float* row) { x.read(token, row); };"
ALLOCATE = "outputs[0].set_data(mx::allocator::malloc(outputs[0].nbytes()));\n  "
_PRIMITIVE = [
    primitive(
        "primitive-computes-at-once",
        DISPATCH,
        ALLOCATE + "compute(inputs, outputs);",
        "read inputs in the function that you dispatch, not in eval_cpu",
        "InputsMayStillBeOnTheirWay",
    ),
    primitive(
        "primitive-on-the-default-stream",
        DISPATCH,
        DISPATCH.replace("stream()", "mx::default_stream(mx::Device::cpu)"),
        "dispatch to the encoder of the stream that the primitive was made for",
        "ProductRunsOnItsStream",
    ),
    primitive(
        "primitive-never-computes",
        DISPATCH,
        ALLOCATE + "(void)compute;",
        "in all rows of the matrix",
        "ScalarProductMatchesFloat64",
    ),
    primitive(
        "primitive-ignores-strides",
        READ,
        "const int64_t n = in[0].shape(-1);\n    "
        + READ.replace("&x", "&").replace("x.read(token, row)", "std::copy_n(in[0].data<float>() + token * n, n, row)"),
        "the strides of x were ignored",
        "ProductTakesAnyViewOfX",
    ),
    primitive(
        "primitive-reads-the-first-token",
        READ,
        READ.replace("read(token", "read(0 * token"),
        "every token got the results of the first one",
        "ScalarProductMatchesFloat64",
    ),
    primitive(
        "primitive-calls-mlx",
        DISPATCH,
        DISPATCH
        + """
  if (kernel_ == Kernel::automatic) {
    outputs[0] = mx::quantized_matmul(inputs[0], inputs[1], inputs[2], inputs[3], true, group_size_, 4);
  }""",
        "the library calls mlx::core::quantized_matmul",
        "LibraryCallsNoOperatorOfMlx",
    ),
    primitive(
        "primitive-without-memory",
        DISPATCH,
        "mx::cpu::get_command_encoder(stream()).dispatch("
        "[=, in = inputs, out = outputs]() mutable { compute(in, out); });",
        "used memory that is not its own",
        "ScalarProductMatchesFloat64",
    ),
]

NIBBLE = "w.row(r)[k / 8] >> (4 * (k % 8)) & 15"
_SCALAR = [
    scalar(
        "scalar-high-nibble-first",
        NIBBLE,
        "w.row(r)[k / 8] >> (4 * (7 - k % 8)) & 15",
        "the first level was read from the highest bits",
    ),
    scalar(
        "scalar-nibbles-swapped",
        NIBBLE,
        "w.row(r)[k / 8] >> (4 * (k % 8 ^ 1)) & 15",
        "the two levels of a byte changed places",
    ),
    scalar("scalar-mask-of-7", NIBBLE, NIBBLE.replace(" & 15", " & 7"), "the mask has one bit too few"),
    scalar(
        "scalar-groups-dealt-out",
        "r * w.groups + k / w.group",
        "r * w.groups + k % w.groups",
        "groups were dealt out",
    ),
    scalar(
        "scalar-ignores-begin",
        "for (int64_t r = begin; r < end; ++r) {",
        "for (int64_t r = 0; r < end; ++r) {",
        "the kernel wrote row",
        "ScalarKernelWritesItsRowsOnly",
    ),
    scalar("scalar-no-bias", " + w.biases.at(group)) * x[k]", ") * x[k]", "the bias was left out"),
    scalar(
        "scalar-bias-first",
        "(w.scales.at(group) * static_cast<float>(q) + w.biases.at(group))",
        "w.scales.at(group) * (static_cast<float>(q) + w.biases.at(group))",
        "the bias was added before the scale",
    ),
]

UNPACKED = "    from .quantize import dequantize\n    return mx.inner(x, dequantize(packed, x.dtype))"
_DECOYS = [
    Mutant(
        "product-decoy",
        1,
        CPU,
        "    return _ext.quantized_matmul(x, _parts(packed), packed.group_size, kernel)",
        "    _ext.quantized_matmul(x, _parts(packed), packed.group_size, kernel)\n" + UNPACKED,
        "does not depend on what the kernel quantized_matmul returns",
        "ProductIsComputedByTheExtension",
    ),
    Mutant(
        "product-without-a-kernel",
        1,
        CPU,
        "    return _ext.quantized_matmul(x, _parts(packed), packed.group_size, kernel)",
        UNPACKED,
        "the kernel quantized_matmul was never called",
        "ProductIsComputedByTheExtension",
    ),
    Mutant(
        "product-by-mlx",
        1,
        CPU,
        "    return _ext.quantized_matmul(x, _parts(packed), packed.group_size, kernel)",
        "    return mx.quantized_matmul(x, *_parts(packed), group_size=packed.group_size, bits=4)",
        "quantized_matmul",
        "ScalarProductMatchesFloat64",
    ),
]

BIAS_SUM = "      total[i] = simd::fma(w.biases.load(index, groups), group_sums, total[i]);\n"
_VECTOR = [
    vector("vector-no-bias", BIAS_SUM, "", "the bias was left out"),
    vector(
        "vector-bias-without-sum",
        "const simd::Float group_sums = simd::load(sums + g, groups);",
        "const simd::Float group_sums = simd::set(1.0f);",
        "the biases were added as they are",
    ),
    vector(
        "vector-first-sum",
        "const simd::Float group_sums = simd::load(sums + g, groups);",
        "const simd::Float group_sums = simd::set(sums[0]);",
        "every group got the bias times the first group's sum of x",
    ),
    vector(
        "vector-first-scale",
        "simd::permute(scales[i], group)",
        "simd::permute(scales[i], simd::set(uint32_t{0}))",
        "the first group's scale was used for the whole row",
    ),
    vector(
        "vector-last-groups-lost",
        "for (int64_t g = 0; g < w.groups; g += kLanes) {",
        "for (int64_t g = 0; g + kLanes <= w.groups; g += kLanes) {",
        "in all rows of the matrix",
    ),
    vector(
        "vector-steps-backwards",
        "N::unpack(packed[i], step)",
        "N::unpack(packed[i], N::kSteps - 1 - step)",
        "the first level was read from the highest bits",
    ),
    vector(
        "vector-last-rows-lost",
        "for (r = begin + kRows * quarter; r < end; ++r) {",
        "for (r = begin + kRows * quarter; r < begin; ++r) {",
        "rows 16 .. 18 of 0 .. 18",
        "VectorProductTakesAnyNumberOfRows",
    ),
    vector(
        "vector-first-token",
        "multiply_rows<1>(x.data(m), x.sums(m)",
        "multiply_rows<1>(x.data(0), x.sums(0)",
        "every token got the results of the first one",
    ),
    vector(
        "vector-stride-of-one-product",
        "quarter, y + m * stride + r",
        "quarter, y + m * w.rows + r",
        "the kernel wrote row",
        "VectorKernelWritesItsRowsOnly",
    ),
    vector(
        "vector-all-rows-in-each-piece",
        "for (r = begin + kRows * quarter; r < end; ++r) {",
        "for (r = begin + kRows * quarter; r < w.rows; ++r) {",
        "the kernel wrote row",
        "VectorKernelWritesItsRowsOnly",
    ),
]

_BLOCKED = [
    blocked(
        "panel-scales-of-the-first-rows",
        "w.scales.at((row + source) * w.groups + g)",
        "w.scales.at(source * w.groups + g)",
        " .. 64 of 0 .. 64",
    ),
    blocked(
        "panel-half-repeated",
        "simd::gather(w.row(row) + i, rows_1)",
        "simd::gather(w.row(row) + i, rows_0)",
        "of the matrix, in all tokens of x",
    ),
    blocked(
        "tile-no-bias",
        "simd::fma(biases, sum, total[m][v])",
        "total[m][v] + 0.0f * biases * sum",
        "the bias was left out",
    ),
    blocked(
        "tile-first-scale",
        "simd::load(panel.scales.get() + g * kRows + v * simd::kLanes)",
        "simd::load(panel.scales.get() + v * simd::kLanes)",
        "the first group's scale was used for the whole row",
    ),
    blocked(
        "tile-first-sums",
        "simd::set(sums[g * Tile + m])",
        "simd::set(sums[g * Tile])",
        "every token got the first token's sums of x",
    ),
    blocked(
        "tile-sums-kept",
        "  for (int64_t g = 0; g < groups; ++g) {\n    simd::Float dot[Tile][2] = {};\n",
        "  simd::Float dot[Tile][2] = {};\n  for (int64_t g = 0; g < groups; ++g) {\n",
        "the sum over a group went on from the group before",
    ),
    blocked(
        "blocked-last-tokens-lost",
        "for (int64_t t = 0; t < x.tiles(); ++t) {",
        "for (int64_t t = 0; t + 1 < std::max<int64_t>(2, x.tiles()); ++t) {",
        "tokens 24 .. 26 of 0 .. 26",
        "BlockedProductTakesAnyNumberOfTokens",
    ),
    blocked(
        "blocked-last-rows-lost",
        "for (int64_t row = begin; row < end; row += panel.kRows) {",
        "for (int64_t row = begin; row + panel.kRows <= end; row += panel.kRows) {",
        "rows 32 .. 34 of 0 .. 34",
        "BlockedProductTakesAnyNumberOfRows",
    ),
    blocked(
        "blocked-past-the-end",
        "std::min<int64_t>(panel.kRows, end - row)",
        "std::min<int64_t>(panel.kRows, w.rows - row)",
        "the kernel wrote row",
        "BlockedKernelWritesItsRowsOnly",
    ),
    blocked(
        "blocked-rows-misplaced",
        "panel_tile<kTile>(x, t, panel, w, rows, y + row, stride);",
        "panel_tile<kTile>(x, t, panel, w, rows, y + begin, stride);",
        "of the matrix, in all tokens of x",
    ),
]

RUN = "ThreadPool::shared().run(take_pieces);"
PIECE = "body(begin, std::min(begin + grain, n));"
COVERED = "EveryIndexIsVisitedOnce"
_THREADS = [
    threads("threads-serial", RUN, "take_pieces();", "only 1 took part", "PiecesRunAtTheSameTime"),
    threads(
        "threads-exception-swallowed",
        "    std::rethrow_exception(first);",
        "    return;",
        "the caller got no exception",
        "ExceptionsReachTheCaller",
    ),
    threads(
        "threads-exception-not-caught",
        "    } catch (...) {",
        "    } catch (const std::bad_alloc&) {",
        "your code ended its process",
        "ExceptionsCrossThreads",
    ),
    threads("threads-last-piece-lost", PIECE, f"if (begin + grain <= n) {PIECE}", "were left out", COVERED),
    threads("threads-piece-one-short", PIECE, "body(begin, std::min(begin + grain, n - 1));", "piece [", COVERED),
    threads("threads-twice", RUN, f"{RUN} next.store(0); take_pieces();", "visited too often", COVERED),
    threads(
        "threads-each-does-all",
        "std::atomic<int64_t> next{0};",
        "thread_local std::atomic<int64_t> next{0}; next.store(0);",
        "visited too often",
        "AnyNumberOfThreadsWillDo",
    ),
    threads(
        "threads-pieces-overlap", PIECE, "body(std::max<int64_t>(0, begin - 1), std::min(begin + grain, n));",
        "piece [", COVERED,
    ),
]  # fmt: skip

NORMED = "normalised(x, norm, eps), first);"
SWIGLU = "swiglu(gates.get() + token * I, ups.get() + token * I, I, row);"
SUM = "write_sum(x, downs.get(), E, out[0]);"
_MLP = [
    mlp("mlp-no-residual", SUM, "write(out[0], 0, downs.get(), tokens * E);", "the residual stream was not added"),
    mlp(
        "mlp-no-norm",
        NORMED,
        "[&x](int64_t token, float* row) { x.read(token, row); }, first);",
        "x was not normalised",
    ),
    mlp("mlp-no-eps", NORMED, NORMED.replace("eps", "0.0f"), "eps was left out"),
    mlp(
        "mlp-no-weight",
        "    const int64_t tokens = x.count(), E = down.rows, I = gate.rows;",
        "    const int64_t tokens = x.count(), E = down.rows, I = gate.rows;\n"
        "    std::fill_n(const_cast<float*>(norm.data()), E, 1.0f);",
        "the weight of the norm was left out",
    ),
    mlp(
        "mlp-silu-on-up",
        SWIGLU,
        "swiglu(ups.get() + token * I, gates.get() + token * I, I, row);",
        "silu was applied to up, not to gate",
    ),
    mlp(
        "mlp-first-token",
        SWIGLU,
        "swiglu(gates.get() + 0 * token, ups.get(), I, row);",
        "every token got the hidden state of the first",
    ),
    mlp(
        "mlp-gate-twice",
        "{up, ups.get(), I}}",
        "{gate, ups.get(), I}}",
        "gate was multiplied with itself, not with up",
    ),
    mlp(
        "mlp-norm-read-too-early",
        "[group_size = group_size_, eps = eps_](const Arrays& in, Arrays& out) {\n"
        "    const Rows x(in[0]);\n    const std::vector<float> norm = floats(in[1]);\n    const PackedWeights gate",
        "[group_size = group_size_, eps = eps_, norm = floats(inputs[1])](const Arrays& in, Arrays& out) {\n"
        "    const Rows x(in[0]);\n    const PackedWeights gate",
        "wrong when inputs are still being computed",
        "FusedMlpInputsMayBeOnTheirWay",
    ),
    Mutant(
        "mlp-decoy",
        5,
        CPU,
        "        return fused_mlp(x, layer.post_attention_norm, mlp.w_gate.packed, mlp.w_up.packed, mlp.w_down.packed)",
        "        fused_mlp(x, layer.post_attention_norm, mlp.w_gate.packed, mlp.w_up.packed, mlp.w_down.packed)\n"
        "        return super().mlp(layer, x)",
        "does not depend on what the kernel fused_mlp returns",
        "FusedModelMatchesFloat64",
    ),
]

MUTANTS = _PRIMITIVE + _SCALAR + _DECOYS + _VECTOR + _BLOCKED + _THREADS + _MLP
