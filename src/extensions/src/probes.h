// Single parts of the library, called directly: what tests look at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arrays.h"

namespace tiny_llm {

// What one kernel, "scalar", "vector" or "blocked", writes when it is asked for rows begin .. end - 1 of w alone.
//
// x: (M, I) float32, w: (O, I), both evaluated and row-major. Returns y, (M + 2) rows of O + 3 floats, of which the last
// two rows and the last three columns are nobody's. What was not written is NaN.
std::vector<float> written_rows(const mx::array& x, const PackedArrays& w, int group_size, const std::string& kernel,
                                int64_t begin, int64_t end);

// How often parallel_for called its body for each index, run `depth` times inside itself. Throws std::out_of_range for a
// piece that is empty, longer than the grain or not inside 0 .. n - 1.
std::vector<int> parallel_visits(int64_t n, int64_t grain, int depth);

// Throws std::runtime_error("index BAD") inside the piece that holds index `bad`.
void parallel_failure(int64_t n, int64_t grain, int64_t bad);

// How many threads one parallel_for over n pieces brings together, where each waits up to `seconds` for the others of
// the pool.
int parallel_meeting(int64_t n, double seconds);

// Throws std::runtime_error("another thread") in each piece that another thread than the caller's takes; the caller's
// pieces wait up to `seconds` for the first.
void parallel_failure_elsewhere(double seconds);

// What page_rows writes for the `count` positions from `first` on.
std::vector<int64_t> page_offsets(const std::vector<int32_t>& table, int64_t page_size, int64_t page_stride,
                                  int64_t row_stride, int64_t first, int64_t count);

// What ragged_pieces returns, each piece as its six numbers in the order of `Piece`.
std::vector<std::vector<int64_t>> batch_pieces(const std::vector<int32_t>& bounds, const std::vector<int32_t>& lengths,
                                               int64_t kv_heads, int64_t threads);

}  // namespace tiny_llm
