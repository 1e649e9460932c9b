// First half of a split-K product: part s of `SPLITS` sums over its own stretch of K, so that a matrix of few rows
// still fills the machine. `split_k_reduce` adds the parts.
//
// Packing, groups, x, scales and biases as in quantized_matvec. out: (SPLITS, TOKENS, N) float:
//   out[s][m][n] = sum over the words of part s, x[m][k] * w[n][k].
// Part s holds the words s * ceil(K / 8 / SPLITS) and up of each row, the last ones perhaps fewer or none: a part
// without words writes zeros. SPLITS is threadgroups_per_grid.y.
// Grid: (threads * ceil(N / (ROWS * threads / 32)), SPLITS, 1). Threads per threadgroup: a multiple of 32, from 32 to
// 256.
// Traffic: reads what quantized_matvec reads, all parts together; writes SPLITS * TOKENS * N * 4 bytes.

// Rows of w that a simdgroup multiplies with the same registers of x.
constant constexpr uint ROWS = 4;

// COUNT neighbours that a thread loads at once, at any multiple of sizeof(T).
template <typename T, int COUNT>
struct unaligned_vec {
  T v[COUNT];
};

// kernel body
const uint N = rows;
const uint K = columns;
// begin task: split_k_matvec
const uint words_per_row = K / 8;
const uint groups_per_row = K / GROUP;
const uint lane = thread_index_in_simdgroup;
const uint simdgroup = threadgroup_position_in_grid.x * simdgroups_per_threadgroup + simdgroup_index_in_threadgroup;
const uint first = simdgroup * ROWS;

const uint splits = threadgroups_per_grid.y;
const uint split = threadgroup_position_in_grid.y;
const uint words_per_split = (words_per_row + splits - 1) / splits;
const uint end = min((split + 1) * words_per_split, words_per_row);

float sums[ROWS][TOKENS] = {};
for (uint word = split * words_per_split + lane; word < end; word += 32) {
  float values[TOKENS][8];
  float value_sums[TOKENS];
  for (int m = 0; m < TOKENS; m++) {
    const unaligned_vec<T, 8> block = *(const device unaligned_vec<T, 8>*)(x + m * K + word * 8);
    value_sums[m] = 0.0f;
    for (int j = 0; j < 8; j++) {
      values[m][j] = float(block.v[j]);
      value_sums[m] += values[m][j];
    }
  }
  for (uint r = 0; r < ROWS; r++) {
    if (first + r < N) {
      const uint bits = words[size_t(first + r) * words_per_row + word];
      const size_t group = size_t(first + r) * groups_per_row + word / (GROUP / 8);
      const float scale = float(scales[group]);
      const float bias = float(biases[group]);
      for (int m = 0; m < TOKENS; m++) {
        float dot = 0.0f;
        for (int j = 0; j < 8; j++) {
          dot += float((bits >> (4 * j)) & 15u) * values[m][j];
        }
        sums[r][m] += scale * dot + bias * value_sums[m];
      }
    }
  }
}

for (uint r = 0; r < ROWS; r++) {
  for (int m = 0; m < TOKENS; m++) {
    const float total = simd_sum(sums[r][m]);
    if (lane == 0 && first + r < N) {
      out[(size_t(split) * TOKENS + m) * N + first + r] = total;
    }
  }
}
// end task: split_k_matvec
