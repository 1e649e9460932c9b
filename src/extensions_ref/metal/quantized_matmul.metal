// 4-bit matrix-matrix product in tiles: out[m][n] = sum over k of x[m][k] * w[n][k], for the many tokens m of a prompt.
//
// Packing and groups as in quantized_matvec: words (N, K / 8) uint, scales and biases (N, K / GROUP), GROUP 32, 64 or
// 128. x: (M, K) of type T. out: (M, N) of type T. All contiguous; any M and N. Tiles and sums in float, so that the
// result is as exact as a float product.
// A threadgroup makes a tile of TILE x TILE results. It walks along K in steps of TILE: load a tile of x, unpack and
// dequantise a tile of w, multiply. Each of its 4 simdgroups makes a quarter, 2 x 2 fragments of 8 x 8.
// Grid: (128 * ceil(N / TILE), ceil(M / TILE), 1). Threads per threadgroup: 128, no other number.
// Traffic: x is read ceil(N / TILE) times, w ceil(M / TILE) times: ceil(N / TILE) * M * K * sizeof(T)
// + ceil(M / TILE) * N * (K / 2 + K / 8 * 2 * sizeof(scale)) bytes; writes M * N * sizeof(T).
// Threadgroup memory: 2 * TILE * STRIDE * 4 = 9,216 bytes. Barriers: 2 * K / TILE + 1.

constant constexpr uint TILE = 32;
// Floats from one row of a tile to the next. 36 and not 32: rows then start in different banks of threadgroup memory.
constant constexpr uint STRIDE = 36;

// COUNT neighbours that a thread loads or stores at once, at any multiple of sizeof(T).
template <typename T, int COUNT>
struct unaligned_vec {
  T v[COUNT];
};

// Eight weights of one word: w = scale * q + bias.
inline void dequantize_word(uint word, float scale, float bias, threadgroup float* to) {
  // begin task: dequantize_word
  for (int j = 0; j < 8; j++) {
    to[j] = scale * float((word >> (4 * j)) & 15u) + bias;
  }
  // end task: dequantize_word
}

// kernel body
const uint M = tokens;
const uint N = rows;
const uint K = columns;
threadgroup float x_tile[TILE * STRIDE];
threadgroup float w_tile[TILE * STRIDE];

const uint m0 = threadgroup_position_in_grid.y * TILE;
const uint n0 = threadgroup_position_in_grid.x * TILE;

// ANCHOR: places
// A tile row has 4 words: each of the 128 threads loads 8 numbers of x and one word of w.
const uint row = thread_index_in_threadgroup / 4;
const uint column = thread_index_in_threadgroup % 4 * 8;

// The quarter of the tile that this simdgroup makes.
const uint quarter_m = simdgroup_index_in_threadgroup / 2 * 16;
const uint quarter_n = simdgroup_index_in_threadgroup % 2 * 16;
// ANCHOR_END: places
simdgroup_float8x8 sums[2][2];
for (int i = 0; i < 2; i++) {
  for (int j = 0; j < 2; j++) {
    sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }
}

// begin task: quantized_matmul
for (uint k0 = 0; k0 < K; k0 += TILE) {
  threadgroup float* to = x_tile + row * STRIDE + column;
  if (m0 + row < M) {
    const unaligned_vec<T, 8> block = *(const device unaligned_vec<T, 8>*)(x + size_t(m0 + row) * K + k0 + column);
    for (int j = 0; j < 8; j++) {
      to[j] = float(block.v[j]);
    }
  } else {
    for (int j = 0; j < 8; j++) {
      to[j] = 0.0f;
    }
  }
  // Rows past the last one are repeated: their results are never stored.
  const size_t w_row = min(n0 + row, N - 1);
  const size_t group = w_row * (K / GROUP) + (k0 + column) / GROUP;
  dequantize_word(words[w_row * (K / 8) + (k0 + column) / 8], float(scales[group]), float(biases[group]),
                  w_tile + row * STRIDE + column);
  threadgroup_barrier(mem_flags::mem_threadgroup);

  for (uint k = 0; k < TILE; k += 8) {
    simdgroup_float8x8 a[2], b[2];
    for (int i = 0; i < 2; i++) {
      simdgroup_load(a[i], x_tile + (quarter_m + 8 * i) * STRIDE + k, STRIDE);
      simdgroup_load(b[i], w_tile + (quarter_n + 8 * i) * STRIDE + k, STRIDE, ulong2(0), true);
    }
    for (int i = 0; i < 2; i++) {
      for (int j = 0; j < 2; j++) {
        simdgroup_multiply_accumulate(sums[i][j], a[i], b[j], sums[i][j]);
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}
// end task: quantized_matmul

// The tile may hang over an edge of `out`, and is float: it passes through threadgroup memory.
for (int i = 0; i < 2; i++) {
  for (int j = 0; j < 2; j++) {
    simdgroup_store(sums[i][j], x_tile + (quarter_m + 8 * i) * STRIDE + quarter_n + 8 * j, STRIDE);
  }
}
threadgroup_barrier(mem_flags::mem_threadgroup);
if (m0 + row < M) {
  for (uint j = column; j < min(column + 8, N - n0); j++) {
    out[size_t(m0 + row) * N + n0 + j] = T(x_tile[row * STRIDE + j]);
  }
}
