// Day 7 in a third style: blocks from the last to the first, statistics in double, no vectors of its own.

// file: extensions/src/flash_attention.cpp
// begin task: flash_attention_rows
if (first >= last) {
  return;
}
KeyBlock<T> block(q.rows, q.D);
std::vector<float> table(padded_rows(q.rows) * kKeys);
const int64_t blocks = (last - first + kKeys - 1) / kKeys;
for (int64_t b = blocks - 1; b >= 0; --b) {
  const int64_t start = first + b * kKeys;
  const int64_t length = std::min<int64_t>(kKeys, last - start);
  block.load(kv, start, length);
  block.scores(q, scale, table.data());
  for (int64_t r = 0; r < q.rows; ++r) {
    float* const row = table.data() + r * kKeys;
    const int64_t seen = std::max<int64_t>(0, std::min(length, q.visible[r] - start));
    double before = softmax.sum[r];
    if (seen > 0) {
      const float highest = *std::max_element(row, row + seen);
      if (highest > softmax.largest[r]) {
        const double shrink = std::exp(double(softmax.largest[r]) - double(highest));
        before *= shrink;
        for (int64_t d = 0; d < q.D; ++d) {
          softmax.row(r)[d] *= static_cast<float>(shrink);
        }
        softmax.largest[r] = highest;
      }
    }
    double now = 0.0;
    for (int i = 0; i < kKeys; ++i) {
      row[i] = i < seen ? std::exp(row[i] - softmax.largest[r]) : 0.0f;
      now += row[i];
    }
    softmax.sum[r] = static_cast<float>(before + now);
  }
  block.add_values(table.data(), q.rows, softmax);
}
// end task: flash_attention_rows
