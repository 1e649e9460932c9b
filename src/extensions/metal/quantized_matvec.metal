// This file is yours to edit. Read book/src/week2-06-metal-matmul.md.

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
#error "Week 2 Day 6 Task 1: quantized_matvec - see book/src/week2-06-metal-matmul.md#task-1"
// end task: quantized_matvec
