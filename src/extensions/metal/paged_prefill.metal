// This file is yours to edit. Read book/src/week3-04-paged-attention.md.

// Causal attention of a tile of queries of one request over the request's pages, one tile of keys after another.
//
// q: (T, H, 1, D), one token per row; request i owns rows bounds[i] .. bounds[i + 1] - 1, at least one: the last of its
// lengths[i] positions, so row r sees keys 0 .. lengths[i] - bounds[i + 1] + r. keys, values: (pages, H_kv, page_size,
// D). All of type T, in any layout, read by their strides. Query head h reads key/value head h / (H / H_kv). table:
// (n, max pages) int32, contiguous; position s of request i stands in page table[i][s / page_size], row s % page_size;
// entries behind its pages are not read. D is a template constant, a multiple of 8, at most 128. out: (T, H, 1, D) of
// type T, contiguous. Arithmetic in float, rounded once to T.
// Grid: (128 * (T / QUERIES + n), H, 1), a threadgroup per QUERIES queries of a request and head, some without any.
// Threads per threadgroup: 128, no other number. KEYS, the keys of a tile, is a template constant: 32 for D up to 64,
// else 16.
// Each of the 4 simdgroups owns 8 queries: their scores against a tile of keys, and their results, D / 8 fragments of
// 8 x 8. Lane i keeps the maximum and the sum of query i / 4.
// Traffic: reads T * H * D * sizeof(T), and for each tile of queries the keys and values that its last query sees, and
// their entries of the table. Writes T * H * D * sizeof(T). Threadgroup memory and barriers: as in flash_prefill.metal,
// whose helpers stand before this file: QUERIES, SIMDGROUPS, PADDING, `load_tile`, `tile_scores`, `softmax_tile`.

// The request that has this tile: the last one whose tiles, from bounds[i] / QUERIES + i on, begin at or before it.
template <typename Bounds>
inline uint request_of_tile(uint tile, Bounds bounds, uint requests) {
  // begin task: request_of_tile
  #error "Week 3 Day 4 Task 4: request_of_tile - see book/src/week3-04-paged-attention.md#task-4"
  // end task: request_of_tile
}

// Loads the rows of positions first .. first + ROWS - 1 of a request into `tile`, D + PADDING floats apart; those from
// `end` on are zeros. head: row 0 of page 0 of the key/value head. strides: of the pool, (page, head, position,
// feature). pages: the request's row of the table. All threads take part; needs a barrier before and after.
template <typename T, int ROWS, int D, typename Strides, typename Pages>
inline void load_pages(threadgroup float* tile, const device T* head, Strides strides, Pages pages, uint page_size,
                       uint first, uint end, uint thread_index) {
  // begin task: load_pages
  #error "Week 3 Day 4 Task 4: load_pages - see book/src/week3-04-paged-attention.md#task-4"
  // end task: load_pages
}

// kernel body
constexpr uint ROW = D + PADDING;
constexpr uint SCORE_ROW = KEYS + PADDING;
threadgroup float queries[QUERIES * ROW];
threadgroup float tile[KEYS * ROW];  // of keys, then of values
threadgroup float scores[QUERIES * SCORE_ROW];
threadgroup float diagonals[SIMDGROUPS * 64];

const uint t = thread_index_in_threadgroup;
const uint lane = thread_index_in_simdgroup;
const uint simdgroup = simdgroup_index_in_threadgroup;
const uint h = threadgroup_position_in_grid.y;
const uint h_kv = h / (q_shape[1] / keys_shape[1]);
const auto q_head = q + h * q_strides[1];
const auto k_head = keys + h_kv * keys_strides[1];
const auto v_head = values + h_kv * values_strides[1];
const uint page_size = keys_shape[2];

// Request i has the tiles from bounds[i] / QUERIES + i on: with this many each, none is without a threadgroup, though a
// few threadgroups are without a tile.
const uint request = request_of_tile(threadgroup_position_in_grid.x, bounds, lengths_shape[0]);
const uint tile_of_request = threadgroup_position_in_grid.x - (bounds[request] / QUERIES + request);
const uint first_query = bounds[request] + tile_of_request * QUERIES;  // a row of q
const uint end_query = bounds[request + 1];
if (first_query >= end_query) {
  return;
}
const uint S = lengths[request];
const auto pages = table + request * table_shape[1];

load_tile<T, QUERIES, D>(queries, q_head, q_strides[0], q_strides[3], first_query, end_query, scale, t);

// What this simdgroup owns: 8 rows of `queries`, of `scores` and of the result, and an 8 x 8 matrix that is zero off
// its diagonal. diagonal x result multiplies each row of the result by its own factor.
threadgroup float* own_queries = queries + simdgroup * 8 * ROW;
threadgroup float* own_scores = scores + simdgroup * 8 * SCORE_ROW;
threadgroup float* diagonal = diagonals + simdgroup * 64;
diagonal[lane] = 0.0f;
diagonal[lane + 32] = 0.0f;
threadgroup_barrier(mem_flags::mem_threadgroup);
simdgroup_float8x8 result[D / 8];
for (int j = 0; j < D / 8; j++) {
  result[j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
}

// The query of this lane's statistics, and the keys it sees: those before `visible`. The maximum starts finite, so that
// a row behind the last query, which sees nothing, gets exp(0), and not exp(-infinity + infinity).
const uint row = lane / 4;
const int visible = int(S) - int(end_query) + int(first_query + simdgroup * 8 + row) + 1;
float maximum = -FLT_MAX;
float sum = 0.0f;

// One past the last key that any query of the threadgroup sees.
const int last_visible = int(S) - int(end_query) + int(min(first_query + QUERIES, end_query));

// begin task: paged_prefill
#error "Week 3 Day 4 Task 4: paged_prefill - see book/src/week3-04-paged-attention.md#task-4"
// end task: paged_prefill

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
for (uint i = lane; i < uint(8 * D); i += 32) {
  const uint l = first_query + simdgroup * 8 + i / D;
  if (l < end_query) {
    out[(size_t(l) * q_shape[1] + h) * D + i % D] = T(own_queries[i / D * ROW + i % D]);
  }
}
