// Day 4 in another style: a division for each position; pieces of at most 16 queries, made recursively from the back.

// file: extensions/src/pages.cpp
// begin task: page_rows
for (int64_t s = first; s < first + count; ++s) {
  const int64_t number = pages.table[s / pages.size];
  offsets[s - first] = number * pages.page_stride + s % pages.size * pages.row_stride;
}
// end task: page_rows

// file: extensions/src/ragged.cpp
// begin task: ragged_pieces
constexpr int64_t kFew = 16;
int64_t tiles = 0;
for (int64_t i = 0; i < batch.requests; ++i) {
  tiles += (batch.bounds[i + 1] - batch.bounds[i] + kFew - 1) / kFew;
}
const int64_t cuts = tiles ? std::max<int64_t>(1, (2 * threads + tiles * kv_heads - 1) / (tiles * kv_heads)) : 1;
std::vector<Piece> all;
for (int64_t i = batch.requests - 1; i >= 0; --i) {
  const int64_t rows = batch.bounds[i + 1] - batch.bounds[i];
  for (int64_t row = 0; row < rows; row += kFew) {
    const int64_t count = std::min(kFew, rows - row);
    const int64_t seen = batch.lengths[i] - rows + row + 1, last = seen + count - 1;
    const int64_t parts = tiles * kv_heads >= threads ? 1 : std::clamp<int64_t>(last / kLeastKeys, 1, cuts);
    for (int64_t p = 0; p < parts; ++p) {
      all.push_back({i, batch.bounds[i] + row, count, seen, last * p / parts, last * (p + 1) / parts});
    }
  }
}
return all;
// end task: ragged_pieces
