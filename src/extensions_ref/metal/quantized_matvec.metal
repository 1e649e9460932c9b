// 4-bit matrix-vector product: out[m][n] = sum over k of x[m][k] * w[n][k], for the few tokens m of a decode step.
//
// w is packed as by MLX: words (N, K / 8) uint, number k of a row sits in bits 4 * (k % 8) of word k / 8; a group of
// GROUP neighbours shares a scale and a bias, (N, K / GROUP): w = scale * q + bias. GROUP is 32, 64 or 128 and
// divides K.
// x: (TOKENS, K) of type T. out: (TOKENS, N) of type T. scales, biases: any float type. All contiguous; any N, TOKENS
// from 1 to 8. Sums in float.
// Inside a group the sum is scale * sum(q * x) + bias * sum(x): one multiply-add per weight, and sum(x) serves all
// rows.
// Grid: simdgroups of ROWS rows each, (threads * ceil(N / (ROWS * threads / 32)), 1, 1). Threads per threadgroup: a
// multiple of 32, from 32 to 256 (more may not find room for their registers). Lane i reads words i, i + 32, ... of a
// row: 128 neighbouring bytes at a time.
// Traffic: words are read once, N * K / 2 bytes; scales and biases once per word, N * K / 8 * 2 * sizeof(scale), but 32
// lanes ask for at most 8 different ones; x once per ROWS rows, ceil(N / ROWS) * TOKENS * K * sizeof(T). Writes
// TOKENS * N * sizeof(T) bytes. No threadgroup memory, no barriers.

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
// begin task: quantized_matvec
const uint words_per_row = K / 8;
const uint groups_per_row = K / GROUP;
const uint lane = thread_index_in_simdgroup;
const uint simdgroup = threadgroup_position_in_grid.x * simdgroups_per_threadgroup + simdgroup_index_in_threadgroup;
const uint first = simdgroup * ROWS;

float sums[ROWS][TOKENS] = {};
for (uint word = lane; word < words_per_row; word += 32) {
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
      out[m * N + first + r] = T(total);
    }
  }
}
// end task: quantized_matvec
