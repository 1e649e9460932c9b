// Day 7 in another style: neighbouring keys to one SIMD group, a branch for a new maximum, dot products lane by lane.

// file: extensions/metal/flash_decode.metal
// begin task: online_update
float weight = 1.0f;
if (score > maximum) {
  const float shrink = exp(maximum - score);
  sum *= shrink;
  for (int j = 0; j < PER_LANE; ++j) {
    result[j] *= shrink;
  }
  maximum = score;
} else {
  weight = exp(score - maximum);
}
sum += weight;
for (int j = 0; j < PER_LANE; ++j) {
  result[j] = fma(weight, value[j], result[j]);
}
// end task: online_update
// begin task: flash_decode
float mine[PER_LANE], mixed[PER_LANE], value[PER_LANE];
for (int j = 0; j < PER_LANE; ++j) {
  const uint d = 32 * j + lane;
  mine[j] = d < uint(D) ? float(q_head[d * q_strides[3]]) : 0.0f;
  mixed[j] = 0.0f;
}
float top = -INFINITY, mass = 0.0f;
const uint share = (S + simdgroups - 1) / simdgroups;
const uint stop = min(S, (simdgroup + 1) * share);
for (uint s = simdgroup * share; s < stop; ++s) {
  const auto key = k_head + s * k_row;
  float product = 0.0f;
  for (int j = 0; j < PER_LANE; ++j) {
    const uint d = 32 * j + lane;
    value[j] = 0.0f;
    if (d < uint(D)) {
      product = fma(mine[j], float(key[d * k_step]), product);
      value[j] = float(v_head[s * v_row + d * v_step]);
    }
  }
  online_update<PER_LANE>(top, mass, mixed, simd_sum(product) * scale, value);
}
if (lane == 0) {
  maxima[simdgroup] = top;
}
threadgroup_barrier(mem_flags::mem_threadgroup);

// Bring all to one maximum first, then add.
float highest = maxima[0];
for (uint i = 1; i < simdgroups; ++i) {
  highest = max(highest, maxima[i]);
}
const float factor = exp(top - highest);
if (lane == 0) {
  sums[simdgroup] = mass * factor;
}
for (int j = 0; j < PER_LANE; ++j) {
  if (32 * j + lane < uint(D)) {
    results[simdgroup * D + 32 * j + lane] = mixed[j] * factor;
  }
}
threadgroup_barrier(mem_flags::mem_threadgroup);
for (uint d = thread_index_in_threadgroup; d < uint(D); d += threads_per_threadgroup.x) {
  float above = 0.0f, below = 0.0f;
  for (uint i = 0; i < simdgroups; ++i) {
    above += results[i * D + d];
    below += sums[i];
  }
  out[(b * q_shape[1] + h) * D + d] = T(above / below);
}
// end task: flash_decode

// file: extensions/metal/flash_prefill.metal
// begin task: tile_scores
// The other way round: keys times queries, stored with rows and columns exchanged.
for (int n = 0; n < KEYS; n += 8) {
  simdgroup_float8x8 left, right, product;
  simdgroup_load(left, keys + n * (D + PADDING), D + PADDING);
  simdgroup_load(right, queries, D + PADDING, ulong2(0), true);
  simdgroup_multiply(product, left, right);
  for (int d = 8; d < D; d += 8) {
    simdgroup_load(left, keys + n * (D + PADDING) + d, D + PADDING);
    simdgroup_load(right, queries + d, D + PADDING, ulong2(0), true);
    simdgroup_multiply_accumulate(product, left, right, product);
  }
  simdgroup_store(product, scores + n, KEYS + PADDING, ulong2(0), true);
}
// end task: tile_scores
// begin task: softmax_tile
// Each of the four lanes looks at the whole row, and writes its quarter.
const int seen = clamp(visible, 0, KEYS);
float top = maximum;
for (int n = 0; n < seen; ++n) {
  top = max(top, scores[n]);
}
float row_sum = 0.0f;
for (int n = 0; n < seen; ++n) {
  row_sum += exp(scores[n] - top);
}
simdgroup_barrier(mem_flags::mem_threadgroup);
const int quarter = KEYS / 4;
for (int n = lane % 4 * quarter; n < int(lane % 4 + 1) * quarter; ++n) {
  scores[n] = n < seen ? exp(scores[n] - top) : 0.0f;
}
const float shrink = exp(maximum - top);
maximum = top;
sum *= shrink;
sum += row_sum;
return shrink;
// end task: softmax_tile
// begin task: flash_prefill
int begin = 0;
while (begin < last_visible) {
  load_tile<T, KEYS, D>(tile, k_head, k_row, k_step, uint(begin), S, 1.0f, t);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  tile_scores<KEYS, D>(own_scores, own_queries, tile);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  load_tile<T, KEYS, D>(tile, v_head, v_row, v_step, uint(begin), S, 1.0f, t);
  const float shrink = softmax_tile<KEYS>(own_scores + row * SCORE_ROW, visible - begin, lane, maximum, sum);
  if (lane % 4 == 3) {
    diagonal[9 * row] = shrink;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_float8x8 shrinks, weights, values, added;
  simdgroup_load(shrinks, diagonal, 8);
  for (int j = 0; j < D / 8; ++j) {
    added = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    for (int n = 0; n < KEYS; n += 8) {
      simdgroup_load(weights, own_scores + n, SCORE_ROW);
      simdgroup_load(values, tile + n * ROW + 8 * j, ROW);
      simdgroup_multiply_accumulate(added, weights, values, added);
    }
    simdgroup_multiply_accumulate(result[j], shrinks, result[j], added);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  begin += KEYS;
}
// end task: flash_prefill
