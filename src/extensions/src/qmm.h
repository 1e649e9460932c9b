// Matrix-matrix products with packed 4-bit weights: y[m][r] = sum over k of W[r][k] x[m][k] for many tokens m.
//
// Plain functions on raw memory, like qmv.h.
#pragma once

#include "activations.h"
#include "packed.h"

namespace tiny_llm {

// Some neighbouring rows of the weights, unpacked and turned so that a vector holds one number of kLanes rows.
//   data[((i * kSteps + j) * 2 + v) * kLanes * kSpan + lane * kSpan + s] = nibble j + 4 * s of word i of row
//     v * kLanes + lane of the panel
//   scales[g * kRows + row], biases[g * kRows + row]
template <class Element>
struct Panel {
  static constexpr int kRows = 2 * simd::kLanes;

  Panel(int64_t columns, int group)
      : data(std::make_unique_for_overwrite<Element[]>(kRows * columns)),
        scales(std::make_unique_for_overwrite<float[]>(kRows * (columns / group))),
        biases(std::make_unique_for_overwrite<float[]>(kRows * (columns / group))) {}

  std::unique_ptr<Element[]> data;
  std::unique_ptr<float[]> scales;
  std::unique_ptr<float[]> biases;
};

// Writes y[m * stride + r] for every token m of x and begin <= r < end, with 0 <= begin <= end <= w.rows; nothing else
// of y is touched.
//
// x was made for w's columns and group. The result differs from the scalar one by float rounding alone.
template <class Element>
void qmm_rows(const TiledActivations<Element>& x, const PackedWeights& w, int64_t begin, int64_t end, float* y,
              int64_t stride);

}  // namespace tiny_llm
