// Day 4 in another style: neighbouring keys to one SIMD group, page and row counted up; a linear search; row by row.

// file: extensions/metal/paged_decode.metal
// begin task: paged_decode
float mine[PER_LANE], mixed[PER_LANE], number[PER_LANE];
for (int j = 0; j < PER_LANE; ++j) {
  const uint d = 32 * j + lane;
  mine[j] = d < uint(D) ? float(q_head[d * q_strides[3]]) : 0.0f;
  mixed[j] = 0.0f;
}
float top = -INFINITY, mass = 0.0f;
const uint share = (length + simdgroups - 1) / simdgroups;
const uint stop = min(length, (simdgroup + 1) * share);
uint entry = simdgroup * share / page_size;
uint row = simdgroup * share % page_size;
for (uint s = simdgroup * share; s < stop; ++s) {
  const long page = pages[entry];
  float product = 0.0f;
  for (int j = 0; j < PER_LANE; ++j) {
    const uint d = 32 * j + lane;
    number[j] = 0.0f;
    if (d < uint(D)) {
      product = fma(mine[j], float(k_head[page * keys_strides[0] + row * keys_strides[2] + d * keys_strides[3]]),
                    product);
      number[j] = float(v_head[page * values_strides[0] + row * values_strides[2] + d * values_strides[3]]);
    }
  }
  online_update<PER_LANE>(top, mass, mixed, simd_sum(product) * scale, number);
  if (++row == page_size) {
    row = 0;
    ++entry;
  }
}
if (lane == 0) {
  maxima[simdgroup] = top;
  sums[simdgroup] = mass;
}
for (int j = 0; j < PER_LANE; ++j) {
  const uint d = 32 * j + lane;
  if (d < uint(D)) {
    results[simdgroup * D + d] = mixed[j];
  }
}
threadgroup_barrier(mem_flags::mem_threadgroup);
for (uint d = thread_index_in_threadgroup; d < uint(D); d += threads_per_threadgroup.x) {
  float largest = maxima[0];
  for (uint i = 1; i < simdgroups; ++i) {
    largest = max(largest, maxima[i]);
  }
  float above = 0.0f, below = 0.0f;
  for (uint i = 0; i < simdgroups; ++i) {
    if (maxima[i] > -INFINITY) {
      const float factor = exp(maxima[i] - largest);
      above = fma(factor, results[i * D + d], above);
      below = fma(factor, sums[i], below);
    }
  }
  out[(size_t(request) * q_shape[1] + h) * D + d] = T(above / below);
}
// end task: paged_decode

// file: extensions/metal/paged_prefill.metal
// begin task: request_of_tile
uint found = 0;
for (uint i = 1; i < requests; ++i) {
  if (uint(bounds[i]) / QUERIES + i <= tile) {
    found = i;
  }
}
return found;
// end task: request_of_tile
// begin task: load_pages
const uint lane = thread_index % 32;
for (uint r = thread_index / 32; r < uint(ROWS); r += SIMDGROUPS) {
  const uint s = first + r;
  if (s >= end) {
    for (uint d = lane; d < uint(D); d += 32) {
      tile[r * (D + PADDING) + d] = 0.0f;
    }
    continue;
  }
  const long begin = long(pages[s / page_size]) * strides[0] + long(s % page_size) * strides[2];
  for (uint d = lane; d < uint(D); d += 32) {
    tile[r * (D + PADDING) + d] = float(head[begin + long(d) * strides[3]]);
  }
}
// end task: load_pages
