// Day 4 in a third style: whole pages at a time; two passes, the first of which only counts.

// file: extensions/src/pages.cpp
// begin task: page_rows
int64_t done = 0;
for (int64_t entry = first / pages.size; done < count; ++entry) {
  const int64_t start = pages.table[entry] * pages.page_stride;
  for (int64_t row = (first + done) - entry * pages.size; row < pages.size && done < count; ++row) {
    offsets[done++] = start + row * pages.row_stride;
  }
}
// end task: page_rows

// file: extensions/src/ragged.cpp
// begin task: ragged_pieces
struct Tile {
  int64_t request, query, queries, seen;
};
std::vector<Tile> tiles;
int64_t total = 0, longest = 1;
for (int64_t i = 0; i < batch.requests; ++i) {
  int64_t query = batch.bounds[i];
  while (query < batch.bounds[i + 1]) {
    const int64_t left = batch.bounds[i + 1] - query;
    const int64_t queries = left < kQueries ? left : kQueries;
    const int64_t seen = batch.lengths[i] - left + queries;
    tiles.push_back({i, query, queries, seen});
    total += seen;
    longest = std::max(longest, seen);
    query += queries;
  }
}
int64_t share = longest;  // halved until there is enough for all threads
const auto count = [&] {
  int64_t pieces = 0;
  for (const Tile& tile : tiles) {
    pieces += (tile.seen + share - 1) / share;
  }
  return pieces * kv_heads;
};
while (share / 2 >= kLeastKeys && count() < threads) {
  share = (share + 1) / 2;
}
std::vector<Piece> pieces;
for (const Tile& tile : tiles) {
  for (int64_t from = 0; from < tile.seen; from += share) {
    pieces.push_back({tile.request, tile.query, tile.queries, tile.seen - tile.queries + 1, from,
                      std::min(from + share, tile.seen)});
  }
}
return pieces;
// end task: ragged_pieces
