// Day 4 in a third style: SIMD groups take whole pages in turns; the search walks from the back.

// file: extensions/metal/paged_decode.metal
// begin task: paged_decode
float query[PER_LANE];
float result[PER_LANE];
for (int j = 0; j < PER_LANE; j++) {
  const int d = lane + 32 * j;
  query[j] = d < D ? float(q_head[d * q_strides[3]]) * scale : 0.0f;
  result[j] = 0.0f;
}
float maximum = -INFINITY;
float sum = 0.0f;
for (uint entry = simdgroup; entry * page_size < length; entry += simdgroups) {
  const auto key_page = k_head + long(pages[entry]) * keys_strides[0];
  const auto value_page = v_head + long(pages[entry]) * values_strides[0];
  const uint rows = min(page_size, length - entry * page_size);
  for (uint row = 0; row < rows; row++) {
    float partial = 0.0f;
    float value[PER_LANE];
    for (int j = 0; j < PER_LANE; j++) {
      const int d = lane + 32 * j;
      partial += d < D ? query[j] * float(key_page[row * keys_strides[2] + d * keys_strides[3]]) : 0.0f;
      value[j] = d < D ? float(value_page[row * values_strides[2] + d * values_strides[3]]) : 0.0f;
    }
    online_update<PER_LANE>(maximum, sum, result, simd_sum(partial), value);
  }
}
if (lane == 0) {
  maxima[simdgroup] = maximum;
  sums[simdgroup] = sum;
}
for (int j = 0; j < PER_LANE; j++) {
  const int d = lane + 32 * j;
  if (d < D) {
    results[simdgroup * D + d] = result[j];
  }
}
threadgroup_barrier(mem_flags::mem_threadgroup);
const float largest = simd_max(lane < simdgroups ? maxima[lane] : -INFINITY);
const float total = simd_sum(lane < simdgroups ? exp(maxima[lane] - largest) * sums[lane] : 0.0f);
for (uint d = thread_index_in_threadgroup; d < uint(D); d += threads_per_threadgroup.x) {
  float merged = 0.0f;
  for (uint i = 0; i < simdgroups; i++) {
    merged += exp(maxima[i] - largest) * results[i * D + d];
  }
  out[(size_t(request) * q_shape[1] + h) * D + d] = T(merged / total);
}
// end task: paged_decode

// file: extensions/metal/paged_prefill.metal
// begin task: request_of_tile
uint candidate = requests - 1;
while (candidate > 0 && uint(bounds[candidate]) / QUERIES + candidate > tile) {
  candidate--;
}
return candidate;
// end task: request_of_tile
