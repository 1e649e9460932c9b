#include "ragged.h"

#include <algorithm>
#include <stdexcept>

namespace tiny_llm {

std::vector<Piece> ragged_pieces(const Ragged& batch, int64_t kv_heads, int64_t threads) {
  // begin task: ragged_pieces
  std::vector<Piece> wholes;
  int64_t all_keys = 0;
  for (int64_t i = 0; i < batch.requests; ++i) {
    const int64_t end = batch.bounds[i + 1], before = batch.lengths[i] - end;  // query t sees keys 0 .. before + t
    for (int64_t query = batch.bounds[i]; query < end; query += kQueries) {
      const int64_t queries = std::min(kQueries, end - query), keys = before + query + queries;
      wholes.push_back({i, query, queries, before + query + 1, 0, keys});
      all_keys += keys * kv_heads;
    }
  }
  // So many keys that each thread gets a few pieces.
  const int64_t share = std::max(kLeastKeys, all_keys / (4 * threads));
  std::vector<Piece> pieces;
  for (const Piece& whole : wholes) {
    for (int64_t key = 0; key < whole.last_key; key += share) {
      pieces.push_back(whole);
      pieces.back().first_key = key;
      pieces.back().last_key = std::min(key + share, whole.last_key);
    }
  }
  return pieces;
  // end task: ragged_pieces
}

}  // namespace tiny_llm
