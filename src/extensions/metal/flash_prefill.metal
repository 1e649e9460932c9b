// This file is yours to edit. Read book/src/week2-07-flash-attention.md.

// Causal attention of a tile of queries, softmax(q k^T * scale + mask) v, one tile of keys after another: scores live
// in threadgroup memory and never reach device memory.
//
// q: (B, H, L, D). k, v: (B, H_kv, S, D). All of type T, in any layout, read by their strides (in elements, one per
// axis): a view of a cache costs no copy. Query head h reads key/value head h / (H / H_kv). The L queries are the
// last L of S positions: query i sees keys 0 .. S - L + i; one that sees none (L > S) gets zeros. D is a template
// constant, a multiple of 8, at most 128. out: (B, H, L, D) of type T, contiguous. Arithmetic in float, rounded once
// to T.
// Grid: one threadgroup per QUERIES queries of a head, (128 * ceil(L / QUERIES), H, B). Threads per threadgroup: 128,
// no other number. KEYS, the keys of a tile, is a template constant: 32 for D up to 64, else 16.
// Each of the 4 simdgroups owns 8 queries: their scores against a tile of keys, and their results, D / 8 fragments of
// 8 x 8. Lane i keeps the maximum and the sum of query i / 4.
// Traffic: reads B * H * L * D * sizeof(T), and for each tile of queries the keys and values that its last query sees,
// rounded up to KEYS: at most B * H * ceil(L / QUERIES) * 2 * S * D * sizeof(T). Writes B * H * L * D * sizeof(T).
// Threadgroup memory: ((QUERIES + KEYS) * (D + 4) + QUERIES * (KEYS + 4) + 256) * 4, at most 28,928 bytes.
// Barriers: 4 for each tile of keys, and 2.

constant constexpr uint QUERIES = 32;
// Simdgroups in a threadgroup, each with 8 queries.
constant constexpr uint SIMDGROUPS = 4;
// A row of a tile is a few floats longer than its numbers: rows then start in different banks of threadgroup memory.
constant constexpr uint PADDING = 4;

// Loads rows first .. first + ROWS - 1 of a head, whose element d of row r is at[r * row_stride + d * stride], into
// `tile`, times `factor`; rows from `end` on are zeros. All threads take part; needs a barrier before and after.
template <typename T, int ROWS, int D>
inline void load_tile(threadgroup float* tile, const device T* at, long row_stride, long stride, uint first, uint end,
                      float factor, uint thread_index) {
  for (uint i = thread_index; i < uint(ROWS * D); i += 32 * SIMDGROUPS) {
    const uint row = i / D;
    const uint d = i % D;
    const bool inside = first + row < end;
    tile[row * (D + PADDING) + d] = inside ? float(at[(first + row) * row_stride + d * stride]) * factor : 0.0f;
  }
}

// The scores of 8 queries against a tile of keys, 8 keys at a time: scores[r][n] = sum over d of queries[r][d] *
// keys[n][d]. Rows of queries and keys are D + PADDING apart, rows of scores KEYS + PADDING. Called by whole
// simdgroups; needs a simdgroup barrier after it.
template <int KEYS, int D>
inline void tile_scores(threadgroup float* scores, const threadgroup float* queries, const threadgroup float* keys) {
  // begin task: tile_scores
  #error "Week 2 Day 7 Task 4: tile_scores - see book/src/week2-07-flash-attention.md#task-4"
  // end task: tile_scores
}

// Takes a tile of scores of one query into its running softmax: turns the first `visible` scores (none if negative, all
// if more than KEYS) into weights exp(score - maximum) and the others into 0, updates `maximum` and `sum`, and returns
// the factor by which everything from earlier tiles shrinks. Lanes 4 * r .. 4 * r + 3 share row r, end with the same
// statistics and return the same factor; `scores` is the row that this lane shares. Called by whole simdgroups; needs a
// barrier after it.
template <int KEYS>
inline float softmax_tile(threadgroup float* scores, int visible, uint lane, thread float& maximum, thread float& sum) {
  // begin task: softmax_tile
  #error "Week 2 Day 7 Task 4: softmax_tile - see book/src/week2-07-flash-attention.md#task-4"
  // end task: softmax_tile
}

// kernel body
constexpr uint ROW = D + PADDING;
constexpr uint SCORE_ROW = KEYS + PADDING;
threadgroup float queries[QUERIES * ROW];
threadgroup float tile[KEYS * ROW];  // of keys, then of values
threadgroup float scores[QUERIES * SCORE_ROW];
threadgroup float diagonals[SIMDGROUPS * 64];

const uint L = q_shape[2];
const uint S = k_shape[2];
const uint t = thread_index_in_threadgroup;
const uint lane = thread_index_in_simdgroup;
const uint simdgroup = simdgroup_index_in_threadgroup;
const uint first_query = threadgroup_position_in_grid.x * QUERIES;
const uint h = threadgroup_position_in_grid.y;
const uint b = threadgroup_position_in_grid.z;
const uint h_kv = h / (q_shape[1] / k_shape[1]);
const auto q_head = q + b * q_strides[0] + h * q_strides[1];
const auto k_head = k + b * k_strides[0] + h_kv * k_strides[1];
const auto v_head = v + b * v_strides[0] + h_kv * v_strides[1];
// From one token to the next, and from one feature to the next.
const long q_row = q_strides[2], q_step = q_strides[3];
const long k_row = k_strides[2], k_step = k_strides[3];
const long v_row = v_strides[2], v_step = v_strides[3];

load_tile<T, QUERIES, D>(queries, q_head, q_row, q_step, first_query, L, scale, t);

// What this simdgroup owns: 8 rows of `queries`, of `scores` and of the result, and an 8 x 8 matrix that is zero off
// its diagonal. diagonal x result multiplies each row of the result by its own factor.
threadgroup float* own_queries = queries + simdgroup * 8 * ROW;
threadgroup float* own_scores = scores + simdgroup * 8 * SCORE_ROW;
threadgroup float* diagonal = diagonals + simdgroup * 64;
diagonal[lane] = 0.0f;
diagonal[lane + 32] = 0.0f;
threadgroup_barrier(mem_flags::mem_threadgroup);  // for a threadgroup whose queries see no key
simdgroup_float8x8 result[D / 8];
for (int j = 0; j < D / 8; j++) {
  result[j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
}

// The query of this lane's statistics, and the keys it sees: those before `visible`, which may be negative. The maximum
// starts finite, so that a query that has seen nothing yet gets exp(0), and not exp(-infinity + infinity).
const uint row = lane / 4;
const int visible = int(S) - int(L) + int(first_query + simdgroup * 8 + row) + 1;
float maximum = -FLT_MAX;
float sum = 0.0f;

// One past the last key that any query of the threadgroup sees.
const int last_visible = int(S) - int(L) + int(min(first_query + QUERIES, L));

// begin task: flash_prefill
#error "Week 2 Day 7 Task 4: flash_prefill - see book/src/week2-07-flash-attention.md#task-4"
// end task: flash_prefill

// Divide by the sums, and store through the rows of `queries`, which nobody needs any more.
if (lane % 4 == 0) {
  diagonal[row * 9] = sum > 0.0f ? 1.0f / sum : 0.0f;
}
threadgroup_barrier(mem_flags::mem_threadgroup);
simdgroup_float8x8 inverse;
simdgroup_load(inverse, diagonal, 8);
for (int j = 0; j < D / 8; j++) {
  simdgroup_multiply(result[j], inverse, result[j]);
  simdgroup_store(result[j], own_queries + 8 * j, ROW);
}
simdgroup_barrier(mem_flags::mem_threadgroup);
const size_t out_head = (size_t(b) * q_shape[1] + h) * L * D;
for (uint i = lane; i < uint(8 * D); i += 32) {
  const uint l = first_query + simdgroup * 8 + i / D;
  if (l < L) {
    out[out_head + size_t(l) * D + i % D] = T(own_queries[i / D * ROW + i % D]);
  }
}
