// Day 7 in another style: one key at a time, number by number, where keys and values lie.

// file: extensions/src/flash_attention.cpp
// begin task: flash_attention_rows
for (int64_t r = 0; r < q.rows; ++r) {
  float top = softmax.largest[r];
  float mass = softmax.sum[r];
  float* mixed = softmax.row(r);
  const int64_t end = std::min(last, q.visible[r]);
  for (int64_t s = first; s < end; ++s) {
    const T* key = kv.keys + s * kv.key_stride;
    const T* value = kv.values + s * kv.value_stride;
    float score = 0.0f;
    for (int64_t d = 0; d < q.D; ++d) {
      score += to_float(q.row(r)[d]) * to_float(key[d]);
    }
    score *= scale;
    float weight = 1.0f;
    if (score > top) {
      const float shrink = std::exp(top - score);
      top = score;
      mass *= shrink;
      for (int64_t d = 0; d < q.D; ++d) {
        mixed[d] *= shrink;
      }
    } else {
      weight = std::exp(score - top);
    }
    mass += weight;
    for (int64_t d = 0; d < q.D; ++d) {
      mixed[d] += weight * to_float(value[d]);
    }
  }
  softmax.largest[r] = top;
  softmax.sum[r] = mass;
}
// end task: flash_attention_rows
