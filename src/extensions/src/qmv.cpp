// This file is yours to edit. Read book/src/week2-04-cpu-kernels.md.

#include "qmv.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace tiny_llm {

void qmv_scalar(const float* x, const PackedWeights& w, int64_t begin, int64_t end, float* y) {
  // begin task: qmv_scalar
  throw std::runtime_error("Week 2 Day 4 Task 1: qmv_scalar - see book/src/week2-04-cpu-kernels.md#task-1");
  // end task: qmv_scalar
}

// The products of `Rows` rows, r, r + apart, r + 2 * apart, ..., with one token:
// y[i * apart] = row (r + i * apart) of W times x.
//
// Takes kLanes groups at a time: so many scales fill one vector. Every load of x serves all the rows, and their sums
// are independent of each other, so that the machine need not wait for one multiply-add to begin the next.
template <int Rows, class Element>
static void multiply_rows(const Element* x, const float* sums, const PackedWeights& w, int64_t r, int64_t apart,
                          float* y) {
  // begin task: multiply_rows
  throw std::runtime_error("Week 2 Day 4 Task 2: multiply_rows - see book/src/week2-04-cpu-kernels.md#task-2");
  // end task: multiply_rows
}

template <class Element>
void qmv_rows(const InterleavedActivations<Element>& x, const PackedWeights& w, int64_t begin, int64_t end, float* y,
              int64_t stride) {
  // begin task: qmv_rows
  throw std::runtime_error("Week 2 Day 4 Task 2: qmv_rows - see book/src/week2-04-cpu-kernels.md#task-2");
  // end task: qmv_rows
}

template void qmv_rows(const InterleavedActivations<float>&, const PackedWeights&, int64_t, int64_t, float*, int64_t);
#if TINY_LLM_BF16_DOT
template void qmv_rows(const InterleavedActivations<Bf16>&, const PackedWeights&, int64_t, int64_t, float*, int64_t);
#endif

}  // namespace tiny_llm
