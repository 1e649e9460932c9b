// This file is yours to edit. Read book/src/week2-06-metal-matmul.md.

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
#error "Week 2 Day 6 Task 3: split_k_matvec - see book/src/week2-06-metal-matmul.md#task-3"
// end task: split_k_matvec
