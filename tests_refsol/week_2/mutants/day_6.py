"""Plausible wrong solutions of Week 2 Day 6, and the case that catches each."""

from course.mutants import Mutant

MATVEC, MATMUL = "extensions/metal/quantized_matvec.metal", "extensions/metal/quantized_matmul.metal"
SPLIT_K, REDUCE = "extensions/metal/split_k_matvec.metal", "extensions/metal/split_k_reduce.metal"
WRAPPER = "kernels/metal_matmul.py"
OUT_OF_BOUNDS = "out of bounds"
NEVER_WRITTEN = "never written"
RACE = "data race"
STRETCH = "device read lines"


def matvec(name: str, old: str, new: str, message: str, killer: str = "MatvecMatchesFloat64") -> Mutant:
    return Mutant(f"matvec-{name}", 1, MATVEC, old, new, message, killer)


def matmul(name: str, old: str, new: str, message: str, killer: str = "MatmulMatchesFloat64") -> Mutant:
    return Mutant(f"matmul-{name}", 2, MATMUL, old, new, message, killer)


def split(name: str, old: str, new: str, message: str, killer: str = "SplitKMatchesFloat64") -> Mutant:
    return Mutant(f"split-{name}", 3, SPLIT_K, old, new, message, killer)


def reduce(name: str, old: str, new: str, message: str, killer: str = "ReduceAddsInOrder") -> Mutant:
    return Mutant(f"reduce-{name}", 3, REDUCE, old, new, message, killer)


NIBBLE = "float((bits >> (4 * j)) & 15u)"
SUMS = "sums[r][m] += scale * dot + bias * value_sums[m];"
GROUP = "word / (GROUP / 8);"
LOAD = "const uint bits = words[size_t(first + r) * words_per_row + word];"
WALK = "for (uint word = lane; word < words_per_row; word += 32) {"
STORE = "if (lane == 0 && first + r < N) {"
GUARD = "    if (first + r < N) {\n"
TOTAL = "const float total = simd_sum(sums[r][m]);"
DENSE = (
    "    from .quantize import dequantize\n"
    "    products = x[..., None, :].astype(mx.float32) * dequantize(packed, mx.float32)\n"
    "    beside = mx.sum(products, axis=-1).astype(x.dtype)\n"
)
"""The product in array operations."""

_MATVEC = [
    matvec("nibbles-backwards", NIBBLE, "float((bits >> (28 - 4 * j)) & 15u)", "likely mistake"),
    matvec("signed-levels", NIBBLE, "float(int(bits << (28 - 4 * j)) >> 28)", "the levels were taken as signed"),
    matvec("no-mask", NIBBLE, "float(bits >> (4 * j))", "values are wrong"),
    matvec("no-bias", SUMS, "sums[r][m] += scale * dot;", "the bias was left out"),
    matvec("bias-once-a-word", SUMS, "sums[r][m] += scale * dot + bias;", "the bias was added once per word"),
    matvec(
        "scale-and-bias",
        SUMS,
        SUMS.replace("scale *", "x *").replace("bias *", "scale *").replace("x *", "bias *"),
        "scale and bias changed places",
    ),
    matvec("group-of-words", GROUP, "word / GROUP;", "a group was taken to be so many words, not numbers"),
    matvec(
        "first-row-scales",
        "const size_t group = size_t(first + r) * groups_per_row + word",
        "const size_t group = word",
        "every row got the scales and biases of the first row",
    ),
    matvec("no-simd-sum", TOTAL, "const float total = sums[r][m];", "only lane 0's words were summed"),
    matvec(
        "first-words",
        WALK,
        "for (uint word = lane; word < min(words_per_row, 32u); word += 32) {",
        "only the first 32 words of each row were read",
    ),
    matvec(
        "whole-blocks",
        WALK,
        "for (uint word = lane; word < words_per_row / 32 * 32; word += 32) {",
        "the words after the last whole 32 are missing",
    ),
    matvec("no-guard", GUARD, "    if (true) {\n", OUT_OF_BOUNDS),
    matvec(
        "walk-past-the-row",
        WALK,
        "for (uint word = lane; word < (words_per_row + 31) / 32 * 32; word += 32) {",
        OUT_OF_BOUNDS,
    ),
    matvec("store-unguarded", STORE, "if (lane == 0) {", OUT_OF_BOUNDS),
    matvec("every-lane-stores", STORE, "if (first + r < N) {", RACE),
    matvec(
        "one-row",
        "for (uint r = 0; r < ROWS; r++) {\n  for (int m",
        "for (uint r = 0; r < 1; r++) {\n  for (int m",
        NEVER_WRITTEN,
    ),
    matvec("rows-overlap", "const uint first = simdgroup * ROWS;", "const uint first = simdgroup;", RACE),
    matvec(
        "simdgroup-in-threadgroup",
        "const uint first = simdgroup * ROWS;",
        "const uint first = simdgroup_index_in_threadgroup * ROWS;",
        RACE,
    ),
    matvec(
        "sum-in-branch",
        f"    {TOTAL}\n    {STORE}",
        f"    if (lane == 0) {{\n      sums[r][m] = simd_sum(sums[r][m]);\n    }}\n"
        f"    const float total = sums[r][m];\n    {STORE}",
        "simdgroup",
    ),
    matvec(
        "own-stretch",
        WALK,
        "const uint own = (words_per_row + 31) / 32;\n"
        "for (uint word = lane * own; word < min((lane + 1) * own, words_per_row); word++) {",
        STRETCH,
        "MatvecReadsNeighboursTogether",
    ),
    matvec(
        "row-per-thread",
        "float sums[ROWS][TOKENS] = {};",
        "if (lane < ROWS && first + lane < N) {\n"
        "  const size_t row = first + lane;\n"
        "  for (int m = 0; m < TOKENS; m++) {\n"
        "    float total = 0.0f;\n"
        "    for (uint word = 0; word < words_per_row; word++) {\n"
        "      const uint bits = words[row * words_per_row + word];\n"
        "      const size_t group = row * groups_per_row + word / (GROUP / 8);\n"
        "      const float scale = float(scales[group]), bias = float(biases[group]);\n"
        "      for (uint j = 0; j < 8; j++) {\n"
        "        total += (scale * float((bits >> (4 * j)) & 15u) + bias) * float(x[m * K + word * 8 + j]);\n"
        "      }\n"
        "    }\n"
        "    out[m * N + row] = T(total);\n"
        "  }\n"
        "}\n"
        "return;\n"
        "float sums[ROWS][TOKENS] = {};",
        STRETCH,
        "MatvecReadsNeighboursTogether",
    ),
    matvec(
        "sums-in-t",
        "float sums[ROWS][TOKENS] = {};",
        "T sums[ROWS][TOKENS] = {};",
        "values",
        "MatvecTakesTokensAndTypes",
    ),
    matvec(
        "output-transposed",
        "out[m * N + first + r]",
        "out[(first + r) * TOKENS + m]",
        "tokens and rows changed places",
        "MatvecTakesTokensAndTypes",
    ),
    matvec(
        "first-token",
        "(x + m * K + word * 8)",
        "(x + word * 8)",
        "every token got the first token's result",
        "MatvecTakesTokensAndTypes",
    ),
    Mutant(
        "matvec-beside-the-kernel",
        1,
        "kernels/metal_ops.py",
        "return (quantized_matvec if rows <= MAX_TOKENS else quantized_matmul)(x, w.packed)",
        "(quantized_matvec if rows <= MAX_TOKENS else quantized_matmul)(x, w.packed)\n"
        "        return QuantizedOps.linear(self, x, w)",
        "does not depend on what the kernel quantized_matvec returns",
        "MatvecRunsTheModel",
    ),
    Mutant(
        "matvec-decoy",
        1,
        WRAPPER,
        "    return _MATVEC(",
        DENSE + "    return beside + 0 * _MATVEC(",
        "does not depend on what the kernel quantized_matvec returns",
        "MatvecIsComputedByTheKernel",
    ),
    Mutant(
        "matvec-no-kernel",
        1,
        WRAPPER,
        "    return _MATVEC(",
        DENSE + "    return beside\n    return _MATVEC(",
        "the kernel quantized_matvec was never called",
        "MatvecIsComputedByTheKernel",
    ),
]

UNPACK = "to[j] = scale * float((word >> (4 * j)) & 15u) + bias;"
BEFORE = "  threadgroup_barrier(mem_flags::mem_threadgroup);\n\n  for (uint k = 0;"
AFTER = "  threadgroup_barrier(mem_flags::mem_threadgroup);\n}\n// end task"
TILES = "for (uint k0 = 0; k0 < K; k0 += TILE) {"
TRANSPOSED = "STRIDE, ulong2(0), true);"
MULTIPLY = "simdgroup_multiply_accumulate(sums[i][j], a[i], b[j], sums[i][j]);"
X_GUARD = "if (m0 + row < M) {\n    const"
FILL = "    for (int j = 0; j < 8; j++) {\n      to[j] = 0.0f;"
UNWRITTEN = "nobody has written"

_MATMUL = [
    matmul("nibbles-backwards", UNPACK, UNPACK.replace("4 * j", "28 - 4 * j"), "likely mistake"),
    matmul(
        "signed-levels",
        UNPACK,
        "to[j] = scale * float(int(word << (28 - 4 * j)) >> 28) + bias;",
        "the levels were taken as signed",
    ),
    matmul("no-bias", UNPACK, UNPACK.replace(" + bias", ""), "the bias was left out"),
    matmul("minus-bias", UNPACK, UNPACK.replace("+ bias", "- bias"), "the bias was subtracted"),
    matmul(
        "bias-inside",
        UNPACK,
        "to[j] = scale * (float((word >> (4 * j)) & 15u) + bias);",
        "the bias was added before the scale",
    ),
    matmul(
        "one-word-short",
        "for (int j = 0; j < 8; j++) {\n    to[j] = scale",
        "for (int j = 0; j < 7; j++) {\n    to[j] = scale",
        UNWRITTEN,
    ),
    matmul("no-barrier-before", BEFORE, "\n  for (uint k = 0;", RACE),
    matmul("no-barrier-after", AFTER, "}\n// end task", RACE),
    matmul("device-flag", BEFORE, BEFORE.replace("mem_threadgroup", "mem_device"), RACE),
    matmul("simdgroup-barrier", AFTER, AFTER.replace("  threadgroup_b", "  simdgroup_b"), RACE),
    matmul("barrier-in-branch", BEFORE, "  if (m0 + row < M) {\n  " + BEFORE.replace(";\n\n", ";\n  }\n\n"), "barrier"),
    matmul("return-at-the-edge", TILES, "if (m0 + row >= M) {\n  return;\n}\n" + TILES, "barrier"),
    matmul("x-unguarded", X_GUARD, "if (true) {\n    const", OUT_OF_BOUNDS),
    matmul("x-not-filled", FILL, FILL.replace("j < 8", "j < 0"), UNWRITTEN),
    matmul("w-unguarded", "min(n0 + row, N - 1)", "n0 + row", OUT_OF_BOUNDS),
    matmul(
        "first-tile", TILES, "for (uint k0 = 0; k0 < TILE; k0 += TILE) {", "only the first tile of K was multiplied"
    ),
    matmul(
        "last-tile-missing", TILES, "for (uint k0 = 0; k0 + TILE < K; k0 += TILE) {", "the last tile of K is missing"
    ),
    matmul(
        "first-eight",
        "for (uint k = 0; k < TILE; k += 8) {",
        "for (uint k = 0; k < 8; k += 8) {",
        "only the first 8 of each 32 numbers were multiplied",
    ),
    matmul("not-transposed", TRANSPOSED, "STRIDE);", "each 8 x 8 block of w was transposed"),
    matmul("not-accumulated", MULTIPLY, "simdgroup_multiply(sums[i][j], a[i], b[j]);", "nothing is accumulated"),
    matmul("fragments-exchanged", MULTIPLY, MULTIPLY.replace("a[i], b[j]", "a[j], b[i]"), "values are wrong"),
    matmul("wrong-quarter", "(quarter_n + 8 * i)", "(quarter_m + 8 * i)", "values are wrong"),
    matmul(
        "quarter-forgotten",
        "(quarter_m + 8 * i) * STRIDE + k",
        "(8 * i) * STRIDE + k",
        "the second half of each tile's rows repeats the first",
    ),
    matmul(
        "x-transposed",
        "to[j] = float(block.v[j]);",
        "x_tile[(column + j) * STRIDE + row] = float(block.v[j]);",
        "each tile of x was transposed",
    ),
    matmul(
        "first-group", "(k0 + column) / GROUP;", "column / GROUP;", "every group of a row got its first scale and bias"
    ),
    matmul(
        "first-words",
        "[w_row * (K / 8) + (k0 + column) / 8]",
        "[w_row * (K / 8) + column / 8]",
        "every tile of K took the words of the first",
    ),
    matmul("half-weights", UNPACK, "to[j] = float(half(scale * float((word >> (4 * j)) & 15u) + bias));", "values"),
    matmul(
        "weights-read-again",
        "  dequantize_word(words[w_row",
        "  for (uint again = 0; again < TILE; again++)\n  dequantize_word(words[w_row",
        "device read bytes",
        "MatmulReusesItsTiles",
    ),
    Mutant(
        "matmul-decoy",
        2,
        WRAPPER,
        "    return _MATMUL(",
        DENSE + "    return beside + 0 * _MATMUL(",
        "does not depend on what the kernel quantized_matmul returns",
        "MatmulIsComputedByTheKernel",
    ),
    Mutant(
        "matmul-by-vectors",
        2,
        "kernels/metal_ops.py",
        "return (quantized_matvec if rows <= MAX_TOKENS else quantized_matmul)(x, w.packed)",
        "parts = [x.reshape(rows, -1)[i : i + MAX_TOKENS] for i in range(0, rows, MAX_TOKENS)]\n"
        "        flat = mx.concatenate([quantized_matvec(part, w.packed) for part in parts])\n"
        "        return flat.reshape(*x.shape[:-1], -1)",
        "the kernel quantized_matmul was never called",
        "MatmulRunsTheModel",
    ),
]

PART = "for (uint word = split * words_per_split + lane; word < end; word += 32) {"
PARTIAL = "out[(size_t(split) * TOKENS + m) * N + first + r] = total;"
CEILING = "(words_per_row + splits - 1) / splits;"
END = "min((split + 1) * words_per_split, words_per_row);"
ADD = "sum += partial[size_t(s) * n + i];"
PARTS = "for (uint s = 0; s < uint(splits); s++) {"

_SPLIT = [
    split(
        "whole-row", PART, "for (uint word = lane; word < words_per_row; word += 32) {", "every part sums the whole row"
    ),
    split("floor", CEILING, "words_per_row / splits;", "when a row does not divide evenly are missing"),
    split("no-end", END, "(split + 1) * words_per_split;", OUT_OF_BOUNDS),
    split(
        "one-word-short",
        END,
        END.replace("* words_per_split,", "* words_per_split - 1,"),
        "the last word of each part is missing",
    ),
    split("every-32nd-of-all", PART, PART.replace("split * words_per_split + lane", "lane"), "values are wrong"),
    split(
        "first-does-all",
        PART,
        "for (uint word = lane; word < (split == 0 ? words_per_row : 0); word += 32) {",
        "is all zeros, though",
        "SplitKPartsShareTheWork",
    ),
    split("one-place-for-all", PARTIAL, "out[m * N + first + r] = total;", RACE),
    split(
        "idle-parts-return",
        "float sums[ROWS]",
        "if (split * words_per_split >= words_per_row) {\n  return;\n}\nfloat sums[ROWS]",
        NEVER_WRITTEN,
    ),
    split(
        "parts-and-tokens",
        PARTIAL,
        "out[(size_t(m) * splits + split) * N + first + r] = total;",
        "values are wrong",
        "SplitKTakesTokensAndTypes",
    ),
    split(
        "rounded-parts", PARTIAL, PARTIAL.replace("= total", "= float(T(total))"), "values", "SplitKTakesTokensAndTypes"
    ),
    split("every-lane-stores", STORE, "if (first + r < N) {", RACE),
    split("store-unguarded", STORE, "if (lane == 0) {", OUT_OF_BOUNDS),
    split(
        "own-stretch",
        PART,
        "const uint own = (words_per_split + 31) / 32;\n"
        "const uint begin = split * words_per_split + lane * own;\n"
        "for (uint word = begin; word < min(begin + own, end); word++) {",
        STRETCH,
        "SplitKReadsNeighboursTogether",
    ),
    reduce("last-missing", PARTS, "for (uint s = 0; s + 1 < uint(splits); s++) {", "the last part is missing"),
    reduce("first-missing", PARTS, "for (uint s = 1; s < uint(splits); s++) {", "the first part is missing"),
    reduce("one-more", PARTS, "for (uint s = 0; s <= uint(splits); s++) {", OUT_OF_BOUNDS),
    reduce(
        "backwards",
        ADD,
        "sum += partial[size_t(splits - 1 - s) * n + i];",
        "the parts were added from the last to the first",
    ),
    reduce("transposed", ADD, "sum += partial[size_t(i) * splits + s];", "parts and elements changed places"),
    reduce("not-added", ADD, ADD.replace("+=", "="), "only the last part is in the result"),
    reduce(
        "two-sums",
        "float sum = 0.0f;\n" + PARTS + "\n  " + ADD + "\n}",
        "float sum = 0.0f, odd = 0.0f;\n"
        + PARTS
        + "\n  (s % 2 ? odd : sum) += partial[size_t(s) * n + i];\n}\nsum += odd;",
        "values are wrong",
    ),
    reduce("mean", "out[i] = T(sum);", "out[i] = T(sum / float(splits));", "averaged, not added"),
    reduce("sum-in-t", "float sum = 0.0f;", "T sum = T(0.0f);", "values are wrong"),
    reduce(
        "in-place",
        "  " + ADD,
        "  out[i] = T(sum + float(partial[size_t(s) * n + i]));\n  sum = float(out[i]);",
        "values are wrong",
    ),
    Mutant(
        "split-part-lost",
        3,
        WRAPPER,
        "grid=(_threads_for_rows(N, threads), splits, 1),",
        "grid=(_threads_for_rows(N, threads), max(splits - 1, 1), 1),",
        NEVER_WRITTEN,
        "SplitKMatchesFloat64",
    ),
    Mutant(
        "split-reduces-one-token",
        3,
        WRAPPER,
        "grid=(tokens * N, 1, 1),",
        "grid=(N, 1, 1),",
        NEVER_WRITTEN,
        "SplitKTakesTokensAndTypes",
    ),
    Mutant(
        "split-sum-in-python",
        3,
        WRAPPER,
        "    return _REDUCE(",
        "    return mx.sum(partial, axis=0).reshape(*x.shape[:-1], N).astype(x.dtype)\n    return _REDUCE(",
        "the kernel split_k_reduce was never called",
        "SplitKIsComputedByTheKernels",
    ),
    Mutant(
        "split-decoy",
        3,
        WRAPPER,
        "    return _REDUCE(",
        DENSE + "    return beside + 0 * _REDUCE(",
        "does not depend on what the kernel split_k_matvec returns",
        "SplitKIsComputedByTheKernels",
    ),
]

MUTANTS = [*_MATVEC, *_MATMUL, *_SPLIT]
