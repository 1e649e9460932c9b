// This file is yours to edit. Read book/src/week2-07-flash-attention.md.

// Attention of one query per head over all cached keys, softmax(q k^T * scale) v, in one pass over keys and values.
//
// q: (B, H, 1, D). k, v: (B, H_kv, S, D). All of type T, in any layout, read by their strides (in elements, one per
// axis): a view of a cache costs no copy. Query head h reads key/value head h / (H / H_kv). D is a template constant of
// at most 128; any S from 1. out: (B, H, 1, D) of type T, contiguous. Arithmetic in float, rounded once to T.
// Grid: one threadgroup per query head, (threads, H, B). Threads per threadgroup: a multiple of 32, from 32 to 1024.
// Simdgroup i takes keys i, i + simdgroups, ...; its 32 lanes share the D features of a key: lane, lane + 32, ...
// Each simdgroup keeps a maximum, a sum and an unnormalised result of its own keys; they are merged at the end.
// Traffic: reads B * H * (2 * S + simdgroups) * D * sizeof(T) bytes (the H / H_kv readings of a key mostly come out of
// the cache), writes B * H * D * sizeof(T). Threadgroup memory: 32 * (D + 2) * 4 bytes. Barriers: 1.

// Takes a key of this score and its value into the running softmax: after any number of keys, `result / sum` is their
// softmax-weighted value. `maximum` is the largest score so far, -infinity before the first.
template <int PER_LANE>
inline void online_update(thread float& maximum, thread float& sum, thread float* result, float score,
                          thread const float* value) {
  // begin task: online_update
  #error "Week 2 Day 7 Task 3: online_update - see book/src/week2-07-flash-attention.md#task-3"
  // end task: online_update
}

// kernel body
constexpr int PER_LANE = (D + 31) / 32;
threadgroup float maxima[32];
threadgroup float sums[32];
threadgroup float results[32 * D];

const uint S = k_shape[2];
const uint lane = thread_index_in_simdgroup;
const uint simdgroup = simdgroup_index_in_threadgroup;
const uint simdgroups = simdgroups_per_threadgroup;
const uint h = threadgroup_position_in_grid.y;
const uint b = threadgroup_position_in_grid.z;
const uint h_kv = h / (q_shape[1] / k_shape[1]);
const auto q_head = q + b * q_strides[0] + h * q_strides[1];
const auto k_head = k + b * k_strides[0] + h_kv * k_strides[1];
const auto v_head = v + b * v_strides[0] + h_kv * v_strides[1];
// From one key to the next, and from one feature to the next.
const long k_row = k_strides[2], k_step = k_strides[3];
const long v_row = v_strides[2], v_step = v_strides[3];

// begin task: flash_decode
#error "Week 2 Day 7 Task 3: flash_decode - see book/src/week2-07-flash-attention.md#task-3"
// end task: flash_decode
