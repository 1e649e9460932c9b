// Matrix-vector products with packed 4-bit weights: y[r] = sum over k of W[r][k] x[k].
//
// Plain functions on raw memory: no MLX, no threads. Each computes a range of rows, so that a caller may share rows
// among threads. All sums are float.
#pragma once

#include "activations.h"
#include "packed.h"

namespace tiny_llm {

// The definition, number by number, without vectors: what the fast kernels are compared with.
//
// x: w.columns floats. Writes y[r] for begin <= r < end, 0 <= begin <= end <= w.rows; nothing else of y is touched.
void qmv_scalar(const float* x, const PackedWeights& w, int64_t begin, int64_t end, float* y);

// The same with vectors, for every token m of x: y[m * stride + r] for begin <= r < end.
//
// x was made for w's columns and group. The result differs from the scalar one by float rounding alone.
template <class Element>
void qmv_rows(const InterleavedActivations<Element>& x, const PackedWeights& w, int64_t begin, int64_t end, float* y,
              int64_t stride);

}  // namespace tiny_llm
