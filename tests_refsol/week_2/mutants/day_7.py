"""Plausible wrong solutions of Week 2 Day 7, and the case that catches each.

A Metal kernel is compiled once for each head dimension and type, so killers are cases with few of them.
"""

from course.mutants import Mutant

PYTHON, WRAPPER = "kernels/flash.py", "kernels/metal_flash.py"
CPP = "extensions/src/flash_attention.cpp"
DECODE, PREFILL = "extensions/metal/flash_decode.metal", "extensions/metal/flash_prefill.metal"

ONE_KEY_MORE = "a query sees one key too many"
NOT_ITSELF = "a query does not see its own position"
SUM_KEPT = "the sum was not rescaled when the maximum grew"
RESULT_KEPT = "the result was not rescaled when the maximum grew"
NO_DIVISION = "the division by the sum of the weights is missing"
LAST_BLOCK = "the last block of keys was left out"
FIRST_BLOCK = "the first block of keys was left out"
FROM_ZERO = "does the maximum start at 0?"
NO_SCALE = "the scale was forgotten"
ALL_SCORES = "the scores of all"
MERGED = "the parts were merged without rescaling"
RACE = "data race"
OUT_OF_BOUNDS = "out of bounds"


def python(name: str, old: str, new: str, message: str, killer: str = "FlashMatchesFloat64") -> Mutant:
    return Mutant(name, 1, PYTHON, old, new, message, killer)


def cpp(name: str, old: str, new: str, message: str, killer: str = "CppFlashMatchesFloat64") -> Mutant:
    return Mutant(name, 2, CPP, old, new, message, killer)


def decode(name: str, old: str, new: str, message: str, killer: str = "DecodeReadsViewsByTheirStrides") -> Mutant:
    return Mutant(name, 3, DECODE, old, new, message, killer)


def prefill(name: str, old: str, new: str, message: str, killer: str = "PrefillReadsViewsByTheirStrides") -> Mutant:
    return Mutant(name, 4, PREFILL, old, new, message, killer)


LAST_KEY = "mx.arange(L)[:, None] + (S - L)"
SCALE = " * scale_of(scale, D)"
LOOP = "for start in range(0, S, block):"
KEYS = "(x[:, :, None, start : start + block].astype(mx.float32) for x in (k, v))"

_PYTHON = [
    python("sum-kept", "total = total * keep + mx", "total = total + mx", SUM_KEPT),
    python("result-kept", "result = result * keep + ", "result = result + ", RESULT_KEPT),
    python("maximum-not-kept", "        maximum = larger\n", "", "only the last block of keys counts"),
    python(
        "maximum-from-zero",
        "mx.full((*queries.shape[:-1], 1), mx.finfo(mx.float32).min)",
        "mx.zeros((*queries.shape[:-1], 1))",
        FROM_ZERO,
        "FlashSurvivesSteepScores",
    ),
    python(
        "zero-by-zero",
        "mx.where(total > 0, result / total, 0)",
        "(result / total)",
        "gave NaN",
        "QueriesThatSeeNothingGetZeros",
    ),
    python(
        "no-maximum",
        "mx.exp(maximum - larger), mx.exp(scores - larger)",
        "mx.ones(larger.shape), mx.exp(scores)",
        "expected",
        "FlashSurvivesSteepScores",
    ),
    python("no-division", "result / total, 0)", "result, 0)", NO_DIVISION),
    python(
        "divided-each-time",
        "        maximum = larger\n",
        "        maximum = larger\n        result = result / 2\n",
        "expected",
    ),
    python("one-key-more", LAST_KEY, "mx.arange(L)[:, None] + (S - L + 1)", ONE_KEY_MORE),
    python("one-key-less", LAST_KEY, "mx.arange(L)[:, None] + (S - L - 1)", NOT_ITSELF),
    python("first-positions", LAST_KEY, "mx.arange(L)[:, None]", "taken for the first L positions"),
    python("no-mask", LAST_KEY, "mx.full((L, 1), S)", "nothing was masked"),
    python(
        "heads-modulo",
        KEYS,
        "(mx.unflatten(x[:, mx.arange(H) % H_kv, start : start + block], 1, (H_kv, -1)).astype(mx.float32) "
        "for x in (k, v))",
        "read key/value head h % H_kv",
    ),
    python("no-scale", SCALE, "", NO_SCALE),
    python("scale-twice", SCALE, " * scale_of(scale, D) ** 2", "the scale was applied twice"),
    python("scale-ignored", SCALE, " * scale_of(None, D)", "the given scale was ignored"),
    python("last-block", LOOP, "for start in range(0, S - block + 1, block):", LAST_BLOCK),
    python("first-block", LOOP, "for start in range(block, S, block):", FIRST_BLOCK),
    python(
        "sums-in-dtype",
        "result = result * keep + weights @ values",
        "result = (result * keep + weights @ values).astype(q.dtype)",
        "stop growing",
        "FlashSumsInFloat32",
    ),
    python(
        "scores-in-dtype",
        "queries @ keys.swapaxes(-1, -2)",
        "queries.astype(q.dtype) @ keys.astype(q.dtype).swapaxes(-1, -2)",
        "expected",
        "FlashSurvivesSteepScores",
    ),
    python("wrong-dtype", ".reshape(q.shape).astype(q.dtype)", ".reshape(q.shape)", "the dtype is wrong"),
    python("all-scores", LOOP, "block = S\n    " + LOOP, "scores of all", "FlashNeverHoldsAllScores"),
    python(
        "repeated-keys",
        "    H_kv, S = k.shape[1:3]\n",
        "    k, v = (mx.repeat(x, H // x.shape[1], axis=1) for x in (k, v))\n    H_kv, S = k.shape[1:3]\n",
        "copy no key or value but those of the block",
        "FlashNeverHoldsAllScores",
    ),
    python("no-block-check", "if block < 1:", "if block < 0:", "names block 0", "FlashRefusesWhatDoesNotFit"),
    python(
        "no-shape-check",
        "_, H, L, D = check_shapes(q, k, v)",
        "_, H, L, D = q.shape",
        "expected a ValueError that names",
        "FlashRefusesWhatDoesNotFit",
    ),
]

BLOCK = "std::vector<float> scores(padded_rows(q.rows) * kKeys);\n"
SEEN = "std::min(q.visible[r], last) - begin"
ALL = """std::vector<float> scores(padded_rows(q.rows) * kKeys);
  const int64_t count = last - first;
  std::vector<float> all(q.rows * count);
  for (int64_t begin = first; begin < last; begin += kKeys) {
    const int64_t taken = std::min<int64_t>(kKeys, last - begin);
    block.load(kv, begin, taken);
    block.scores(q, scale, scores.data());
    for (int64_t r = 0; r < q.rows; ++r) {
      for (int64_t i = 0; i < taken; ++i) {
        all[r * count + begin - first + i] = begin + i < q.visible[r] ? scores[r * kKeys + i] : kNothing;
      }
    }
  }
  for (int64_t r = 0; r < q.rows; ++r) {
    const auto row = all.begin() + r * count;
    const float largest = count > 0 ? *std::max_element(row, row + count) : kNothing;
    for (int64_t i = 0; i < count; ++i) {
      row[i] = largest == kNothing ? 0.0f : std::exp(row[i] - largest);
      softmax.sum[r] += row[i];
    }
    softmax.largest[r] = largest;
  }
  for (int64_t begin = first; begin < last; begin += kKeys) {
    const int64_t taken = std::min<int64_t>(kKeys, last - begin);
    block.load(kv, begin, taken);
    std::fill(scores.begin(), scores.end(), 0.0f);
    for (int64_t r = 0; r < q.rows; ++r) {
      std::copy_n(all.begin() + r * count + begin - first, taken, scores.begin() + r * kKeys);
    }
    block.add_values(scores.data(), q.rows, softmax);
  }
  return;
"""
COPY = """std::vector<float> scores(padded_rows(q.rows) * kKeys);
  std::vector<T> copy;
  for (int64_t s = first; s < last; ++s) {
    copy.insert(copy.end(), kv.keys + s * kv.key_stride, kv.keys + s * kv.key_stride + q.D);
  }
"""

_CPP = [
    cpp("cpp-sum-kept", "softmax.sum[r] * keep + simd", "softmax.sum[r] + simd", SUM_KEPT),
    cpp("cpp-result-kept", "if (keep != 1.0f) {", "if (keep > 1.0f) {", RESULT_KEPT),
    cpp("cpp-maximum-not-kept", "      softmax.largest[r] = largest;\n", "", "NaN: expected 0"),
    cpp(
        "cpp-maximum-from-zero",
        "std::max(softmax.largest[r], simd::max(highest));",
        "std::max(std::max(softmax.largest[r], 0.0f), simd::max(highest));",
        FROM_ZERO,
        "CppFlashSurvivesSteepScores",
    ),
    cpp("cpp-one-key-more", SEEN, "std::min(q.visible[r] + 1, last) - begin", ONE_KEY_MORE),
    cpp("cpp-no-mask", SEEN, "last - begin", "nothing was masked"),
    cpp("cpp-unseen-block", "        std::fill_n(row, kKeys, 0.0f);\n", "", "expected"),
    cpp("cpp-last-block", "begin < last; begin += kKeys", "begin + kKeys <= last; begin += kKeys", LAST_BLOCK),
    cpp("cpp-no-scale", "block.scores(q, scale,", "block.scores(q, 1.0f,", NO_SCALE),
    cpp("cpp-all-scores", BLOCK, ALL, ALL_SCORES, "CppFlashNeverHoldsAllScores"),
    cpp("cpp-copied-keys", BLOCK, COPY, "read keys and values where they lie", "CppFlashNeverHoldsAllScores"),
    cpp(
        "cpp-strides-ignored",
        "block.load(kv, begin,",
        "block.load({kv.keys, kv.values, q.D, q.D}, begin,",
        "the strides were ignored",
        "CppFlashReadsViewsByTheirStrides",
    ),
    Mutant(
        "cpp-beside-the-kernel",
        2,
        PYTHON,
        "return _ext.flash_attention(q, k, v, scale_of(scale, D))",
        "_ext.flash_attention(q, k, v, scale_of(scale, D))\n    return flash_attention(q, k, v, scale)",
        "does not depend on what the kernel flash_attention returns",
        "CppFlashIsComputedByTheKernel",
    ),
    Mutant(
        "cpp-table-without-kernel",
        2,
        PYTHON,
        "return cpu_flash_attention(q, k, v)",
        "return flash_attention(q, k, v)",
        "the kernel flash_attention was never called",
        "FlashModelMatchesFloat64",
    ),
]

BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
SHARE = "const float share = exp(maxima[i] - largest);"
DECODE_LOOP = "for (uint s = simdgroup; s < S; s += simdgroups) {"
DECODE_QUERY = "float maximum = -INFINITY;\nfloat sum = 0.0f;\n"
STRIDES = (
    "const long k_row = k_strides[2], k_step = k_strides[3];\nconst long v_row = v_strides[2], v_step = v_strides[3];"
)
NO_STRIDES = "const long k_row = D, k_step = 1;\nconst long v_row = D, v_step = 1;"
DECODE_FIRST = """for (uint s = simdgroup; s < S; s += simdgroups) {
  float score = 0.0f;
  for (int j = 0; j < PER_LANE; j++) {
    const int d = lane + 32 * j;
    score += d < D ? query[j] * float(k_head[s * k_row + d * k_step]) : 0.0f;
  }
  maximum = max(maximum, simd_sum(score));
}
for (uint s = simdgroup; s < S; s += simdgroups) {"""
DECODE_ALL = """threadgroup float all[3000];
for (uint s = simdgroup; s < S; s += simdgroups) {
  float score = 0.0f;
  for (int j = 0; j < PER_LANE; j++) {
    const int d = lane + 32 * j;
    score += d < D ? query[j] * float(k_head[s * k_row + d * k_step]) : 0.0f;
  }
  score = simd_sum(score);
  if (lane == 0) {
    all[s] = score;
  }
}
threadgroup_barrier(mem_flags::mem_threadgroup);
float maximum = -INFINITY;
for (uint s = 0; s < S; s++) {
  maximum = max(maximum, all[s]);
}
float sum = 0.0f;
for (uint s = simdgroup; s < S; s += simdgroups) {
  const float weight = exp(all[s] - maximum);
  sum += weight;
  for (int j = 0; j < PER_LANE; j++) {
    const int d = lane + 32 * j;
    result[j] += d < D ? weight * float(v_head[s * v_row + d * v_step]) : 0.0f;
  }
}
for (uint s = S; s < S; s += simdgroups) {"""
LAUNCH = "    decode = L == 1\n"
ARRAYS = """    decode = L == 1
    if {when}:
        keys, values = (mx.repeat(x, H // x.shape[1], axis=1) for x in (k, v))
        scores = q @ keys.swapaxes(-1, -2) * scale_of(scale, D)
        hidden = mx.arange(k.shape[2]) > mx.arange(L)[:, None] + (k.shape[2] - L)
        weights = mx.exp(scores - mx.max(scores, axis=-1, keepdims=True)) * (1 - hidden)
        return (weights @ values / mx.sum(weights, axis=-1, keepdims=True)).astype(q.dtype)
"""

_DECODE = [
    decode(
        "decode-sum-kept", "sum = sum * keep + weight;", "sum = sum + weight;", SUM_KEPT, "DecodeSurvivesSteepScores"
    ),
    decode(
        "decode-result-kept",
        "result[j] * keep + weight",
        "result[j] + weight",
        RESULT_KEPT,
        "DecodeSurvivesSteepScores",
    ),
    decode("decode-maximum-not-kept", "  maximum = larger;\n", "", "NaN: expected 0"),
    decode(
        "decode-maximum-from-zero",
        "float maximum = -INFINITY;",
        "float maximum = 0.0f;",
        "NaN: expected 0",
        "DecodeSurvivesSteepScores",
    ),
    decode("decode-merge", SHARE, "const float share = 1.0f;", MERGED, "DecodeSurvivesSteepScores"),
    decode("decode-merge-sums", "total += share * sums[i];", "total += sums[i];", "expected"),
    decode("decode-no-division", "T(merged / total)", "T(merged)", NO_DIVISION),
    decode("decode-no-barrier", BARRIER, "\n", RACE),
    decode("decode-simdgroup-barrier", BARRIER, "simdgroup_barrier(mem_flags::mem_threadgroup);\n", RACE),
    decode("decode-wrong-flag", BARRIER, "threadgroup_barrier(mem_flags::mem_device);\n", RACE),
    decode("decode-unwritten", "lane < simdgroups ? maxima[lane] : -INFINITY", "maxima[lane]", "nobody has written"),
    decode(
        "decode-first-key",
        DECODE_LOOP,
        DECODE_LOOP.replace("= simdgroup;", "= simdgroup + 1;"),
        FIRST_BLOCK,
        "DecodeMatchesFloat64",
    ),
    decode("decode-last-key", DECODE_LOOP, DECODE_LOOP.replace("s < S", "s + 1 < S"), LAST_BLOCK),
    decode(
        "decode-score-in-t",
        "  float score = 0.0f;\n  float value[PER_LANE];",
        "  T score = T(0.0f);\n  float value[PER_LANE];",
        "expected",
        "DecodeSurvivesSteepScores",
    ),
    decode("decode-no-simd-sum", "simd_sum(score)", "score", "expected"),
    decode("decode-no-scale", "float(q_head[d * q_strides[3]]) * scale", "float(q_head[d * q_strides[3]])", NO_SCALE),
    decode("decode-no-guard", "score += d < D ? query[j]", "score += true ? query[j]", OUT_OF_BOUNDS),
    decode("decode-strides", STRIDES, NO_STRIDES, "the strides were ignored"),
    decode("decode-two-passes", DECODE_LOOP, DECODE_FIRST, "device read bytes", "DecodeReadsKeysOnce"),
    decode("decode-all-scores", DECODE_QUERY + DECODE_LOOP, DECODE_ALL, "uses index", "DecodeTakesAnyNumberOfKeys"),
    Mutant(
        "decode-in-arrays",
        3,
        WRAPPER,
        LAUNCH,
        ARRAYS.format(when="decode"),
        "the kernel flash_decode was never launched",
        "DecodeReadsKeysOnce",
    ),
]

LOAD_KEYS = "load_tile<T, KEYS, D>(tile, k_head, k_row, k_step, first_key, S, 1.0f, t);\n"
LOAD_VALUES = "load_tile<T, KEYS, D>(tile, v_head, v_row, v_step, first_key, S, 1.0f, t);\n"
SCORES = "tile_scores<KEYS, D>(own_scores, own_queries, tile);\n"
VISIBLE = "visible - first_key, lane"
TILES = "for (int first_key = 0; first_key < last_visible; first_key += KEYS) {"
END = "// end task: flash_prefill"

_PREFILL = [
    prefill("prefill-not-transposed", "ulong2(0), true)", "ulong2(0), false)", "expected"),
    prefill("prefill-half-a-head", "for (int d = 0; d < D; d += 8) {", "for (int d = 8; d < D; d += 8) {", "expected"),
    prefill(
        "prefill-sum-kept",
        "sum = sum * keep + tile_sum;",
        "sum = sum + tile_sum;",
        SUM_KEPT,
        "PrefillSurvivesSteepScores",
    ),
    prefill(
        "prefill-result-kept",
        "diagonal[row * 9] = keep;",
        "diagonal[row * 9] = 1.0f;",
        RESULT_KEPT,
        "PrefillSurvivesSteepScores",
    ),
    prefill("prefill-maximum-not-kept", "  maximum = larger;\n", "", "expected"),
    prefill("prefill-one-key-more", VISIBLE, "visible - first_key + 1, lane", ONE_KEY_MORE),
    prefill("prefill-one-key-less", VISIBLE, "visible - first_key - 1, lane", NOT_ITSELF),
    prefill("prefill-mask-in-tile", VISIBLE, "visible, lane", "expected"),
    prefill("prefill-lane-maximum", "larger = max(larger, simd_shuffle_xor(larger, 2));\n", "\n", "expected"),
    prefill("prefill-lane-sum", "tile_sum += simd_shuffle_xor(tile_sum, 2);\n", "\n", "expected"),
    prefill(
        "prefill-all-tiles",
        TILES,
        TILES.replace("last_visible", "int(S)"),
        "must be skipped",
        "PrefillSkipsWhatNobodySees",
    ),
    prefill(
        "prefill-last-tile",
        TILES,
        TILES.replace("first_key <", "first_key + KEYS <="),
        LAST_BLOCK,
        "PrefillSurvivesSteepScores",
    ),
    prefill("prefill-no-barrier-1", LOAD_KEYS + "  " + BARRIER, LOAD_KEYS, RACE),
    prefill("prefill-no-barrier-2", BARRIER + "\n  " + LOAD_VALUES, LOAD_VALUES, RACE),
    prefill("prefill-no-barrier-3", LOAD_VALUES + "  " + BARRIER, LOAD_VALUES, RACE),
    prefill("prefill-no-barrier-4", "  " + BARRIER + "}\n" + END, "}\n" + END, RACE),
    prefill(
        "prefill-no-simdgroup-barrier", SCORES + "  simdgroup_barrier(mem_flags::mem_threadgroup);\n", SCORES, RACE
    ),
    prefill("prefill-first-simdgroup", SCORES, "tile_scores<KEYS, D>(scores, queries, tile);\n", RACE),
    prefill("prefill-past-the-end", LOAD_VALUES, LOAD_VALUES.replace("S, 1.0f", "S + KEYS, 1.0f"), OUT_OF_BOUNDS),
    prefill("prefill-keys-for-values", LOAD_VALUES, LOAD_VALUES.replace("v_head", "k_head"), "expected"),
    prefill("prefill-strides", STRIDES, NO_STRIDES, "the strides were ignored"),
    Mutant(
        "prefill-in-arrays",
        4,
        WRAPPER,
        LAUNCH,
        ARRAYS.format(when="not decode"),
        "the kernel flash_prefill was never launched",
        "PrefillSkipsWhatNobodySees",
    ),
    Mutant(
        "metal-table-without-kernel",
        4,
        WRAPPER,
        "return metal_flash_attention(q, k, v)",
        "return MetalOps.attend(self, q, k, v)",
        "was never called",
        "MetalFlashModelMatchesFloat64",
    ),
]

MUTANTS = [*_PYTHON, *_CPP, *_DECODE, *_PREFILL]
