// Day 7 in a third style: SIMD groups merged in pairs, tiles from the last to the first, a row of fragments at a time.

// file: extensions/metal/flash_decode.metal
// begin task: online_update
if (score == -INFINITY) {
  return;
}
const float top = fmax(maximum, score);
const float old = maximum == -INFINITY ? 0.0f : exp2((maximum - top) * M_LOG2E_F);
const float now = exp2((score - top) * M_LOG2E_F);
for (int j = PER_LANE - 1; j >= 0; j--) {
  result[j] = old * result[j] + now * value[j];
}
sum = fma(sum, old, now);
maximum = top;
// end task: online_update
// begin task: flash_decode
const uint me = simdgroup;
float part[PER_LANE];
float query[PER_LANE];
float numbers[PER_LANE];
for (int j = 0; j < PER_LANE; j++) {
  part[j] = 0.0f;
  query[j] = lane + 32 * j < uint(D) ? float(q_head[(lane + 32 * j) * q_strides[3]]) : 0.0f;
}
float most = -INFINITY, weights = 0.0f;
for (uint s = S - 1 - me; s < S; s -= simdgroups) {  // below zero it wraps around
  float dots = 0.0f;
  for (int j = 0; j < PER_LANE; j++) {
    const uint d = lane + 32 * j;
    const bool there = d < uint(D);
    dots += there ? float(k_head[s * k_row + d * k_step]) * query[j] : 0.0f;
    numbers[j] = there ? float(v_head[s * v_row + d * v_step]) : 0.0f;
  }
  for (ushort distance = 1; distance < 32; distance *= 2) {
    dots += simd_shuffle_xor(dots, distance);
  }
  online_update<PER_LANE>(most, weights, part, dots * scale, numbers);
}
for (int j = 0; j < PER_LANE; j++) {
  if (lane + 32 * j < uint(D)) {
    results[me * D + lane + 32 * j] = part[j];
  }
}
if (lane == 0) {
  maxima[me] = most;
  sums[me] = weights;
}

// A SIMD group of the first half takes in its partner of the second half, until one is left.
for (uint left = simdgroups; left > 1; left = (left + 1) / 2) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint partner = me + (left + 1) / 2;
  if (partner < left && maxima[partner] > -INFINITY) {
    const float higher = max(maxima[me], maxima[partner]);
    const float a = exp(maxima[me] - higher), b_share = exp(maxima[partner] - higher);
    for (uint d = lane; d < uint(D); d += 32) {
      results[me * D + d] = a * results[me * D + d] + b_share * results[partner * D + d];
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (lane == 0) {
      maxima[me] = higher;
      sums[me] = a * sums[me] + b_share * sums[partner];
    }
  }
}
threadgroup_barrier(mem_flags::mem_threadgroup);
if (me == 0) {
  for (uint d = lane; d < uint(D); d += 32) {
    out[(size_t(b) * q_shape[1] + h) * D + d] = T(results[d] / sums[0]);
  }
}
// end task: flash_decode

// file: extensions/metal/flash_prefill.metal
// begin task: tile_scores
simdgroup_float8x8 rows[KEYS / 8];
for (int n = 0; n < KEYS / 8; n++) {
  rows[n] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
}
for (int d = 0; d < D / 8; d++) {
  simdgroup_float8x8 left;
  simdgroup_load(left, queries, D + PADDING, ulong2(8 * d, 0));
  for (int n = 0; n < KEYS / 8; n++) {
    simdgroup_float8x8 right;
    simdgroup_load(right, keys + 8 * n * (D + PADDING) + 8 * d, D + PADDING, ulong2(0), true);
    simdgroup_multiply_accumulate(rows[n], left, right, rows[n]);
  }
}
for (int n = 0; n < KEYS / 8; n++) {
  simdgroup_store(rows[n], scores, KEYS + PADDING, ulong2(8 * n, 0));
}
// end task: tile_scores
// begin task: softmax_tile
float mine[KEYS / 4];
float top = maximum;
for (int i = 0; i < KEYS / 4; i++) {
  const int n = lane % 4 + 4 * i;
  mine[i] = n < visible ? scores[n] : -INFINITY;
  top = fmax(top, mine[i]);
}
top = quad_max(top);
float added = 0.0f;
for (int i = 0; i < KEYS / 4; i++) {
  const float weight = exp(mine[i] - top);
  scores[lane % 4 + 4 * i] = weight;
  added += weight;
}
const float shrink = exp(maximum - top);
sum = fma(sum, shrink, quad_sum(added));
maximum = top;
return shrink;
// end task: softmax_tile
// begin task: flash_prefill
const int tiles = last_visible <= 0 ? 0 : (last_visible + KEYS - 1) / KEYS;
for (int tile_number = tiles - 1; tile_number >= 0; tile_number--) {
  const int start = tile_number * KEYS;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  load_tile<T, KEYS, D>(tile, k_head, k_row, k_step, start, S, 1.0f, t);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  tile_scores<KEYS, D>(own_scores, own_queries, tile);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float shrink = softmax_tile<KEYS>(own_scores + row * SCORE_ROW, visible - start, lane, maximum, sum);
  if ((lane & 3) == 0) {
    diagonal[8 * row + row] = shrink;
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_float8x8 factors;
  simdgroup_load(factors, diagonal, 8);
  for (int j = 0; j < D / 8; j++) {
    simdgroup_multiply(result[j], factors, result[j]);
  }
  load_tile<T, KEYS, D>(tile, v_head, v_row, v_step, start, S, 1.0f, t);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int n = 0; n < KEYS; n += 8) {
    simdgroup_float8x8 weights;
    simdgroup_load(weights, own_scores, SCORE_ROW, ulong2(n, 0));
    for (int j = 0; j < D / 8; j++) {
      simdgroup_float8x8 values;
      simdgroup_load(values, tile + n * ROW, ROW, ulong2(8 * j, 0));
      simdgroup_multiply_accumulate(result[j], weights, values, result[j]);
    }
  }
}
threadgroup_barrier(mem_flags::mem_threadgroup);
// end task: flash_prefill
