// Batches of requests of any lengths: which queries and keys make a piece of work for one thread.
//
// Plain functions on raw memory: no MLX, no threads.
#pragma once

#include <cstdint>
#include <vector>

namespace tiny_llm {

// The queries of all requests stand one behind the other: request i owns bounds[i] .. bounds[i + 1] - 1, possibly none.
// They are the last of its lengths[i] positions. bounds has requests + 1 numbers and begins with 0.
struct Ragged {
  const int32_t* bounds;
  const int32_t* lengths;
  int64_t requests;
};

// Some queries of one request, answered from some of its keys.
struct Piece {
  int64_t request;
  int64_t query, queries;       // the first, counted over all requests, and how many
  int64_t visible;              // the first query sees keys 0 .. visible - 1, each next one sees one more
  int64_t first_key, last_key;  // the piece goes through keys first_key .. last_key - 1
};

// Query tokens that are answered together at most.
inline constexpr int64_t kQueries = 64;
// Fewer keys are not worth a piece of their own.
inline constexpr int64_t kLeastKeys = 128;

// Cuts a batch into pieces. Each query is in one piece of up to kQueries queries of one request, or in several that
// share its keys: these follow each other, from the first key on, and together hold each key that any of their queries
// sees once, and no other. Keys are shared only where there would be too few pieces for `threads` threads, each piece
// being worked on once for each of kv_heads heads; no piece of several has fewer than kLeastKeys keys, save the last.
std::vector<Piece> ragged_pieces(const Ragged& batch, int64_t kv_heads, int64_t threads);

}  // namespace tiny_llm
