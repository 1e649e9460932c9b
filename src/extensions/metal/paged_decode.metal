// This file is yours to edit. Read book/src/week3-04-paged-attention.md.

// Attention of one query per request and head over the request's pages, softmax(q k^T * scale) v, in one pass.
//
// q: (n, H, 1, D), one query per request. keys, values: (pages, H_kv, page_size, D). All of type T, in any layout, read
// by their strides. Query head h reads key/value head h / (H / H_kv). table: (n, max pages) int32, contiguous; position
// s of request i stands in page table[i][s / page_size], row s % page_size. lengths: (n) int32, the keys of each
// request, from 1; entries of the table behind their pages are not read. bounds: (n + 1) int32, not needed: request i
// owns row i. D is a template constant of at most 128. out: (n, H, 1, D) of type T, contiguous. Arithmetic in float,
// rounded once to T.
// Grid: one threadgroup per query head and request, (threads, H, n). Threads per threadgroup: a multiple of 32, from 32
// to 1024.
// Simdgroup i takes keys i, i + simdgroups, ...; its 32 lanes share the D features of a key: lane, lane + 32, ...
// Each simdgroup keeps a maximum, a sum and an unnormalised result of its own keys; they are merged at the end.
// Traffic: reads H * (2 * all keys + n * simdgroups) * D * sizeof(T) bytes and an entry of the table per key; writes
// n * H * D * sizeof(T). Threadgroup memory: 32 * (D + 2) * 4 bytes. Barriers: 1.
// `online_update` is that of flash_decode.metal, whose helpers stand before this file.

// kernel body
constexpr int PER_LANE = (D + 31) / 32;
threadgroup float maxima[32];
threadgroup float sums[32];
threadgroup float results[32 * D];

const uint lane = thread_index_in_simdgroup;
const uint simdgroup = simdgroup_index_in_threadgroup;
const uint simdgroups = simdgroups_per_threadgroup;
const uint h = threadgroup_position_in_grid.y;
const uint request = threadgroup_position_in_grid.z;
const uint h_kv = h / (q_shape[1] / keys_shape[1]);
const uint page_size = keys_shape[2];
const uint length = lengths[request];
const auto q_head = q + request * q_strides[0] + h * q_strides[1];
const auto k_head = keys + h_kv * keys_strides[1];
const auto v_head = values + h_kv * values_strides[1];
const auto pages = table + request * table_shape[1];

// begin task: paged_decode
#error "Week 3 Day 4 Task 3: paged_decode - see book/src/week3-04-paged-attention.md#task-3"
// end task: paged_decode
