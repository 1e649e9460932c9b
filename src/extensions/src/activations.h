// The activations x of a product, laid out in the order in which the kernels meet them.
//
// Both kernels need x many times, once for each row of the weights, so putting it in order once is cheap. `Element` is
// float, or Bf16 where x is bfloat16 and the machine multiplies such numbers (`DotElement<Bf16>` says so).
#pragma once

#include <cstdint>
#include <memory>

#include "nibbles.h"

namespace tiny_llm {

// For the matrix-vector kernel: one token after another. A vector of words holds kLanes words, so 8 * kLanes numbers of
// a row; the elements that it meets in step j stand together:
//   data(m)[(t * kSteps + j) * kLanes * kSpan + lane * kSpan + i] = x[m][8 * (t * kLanes + lane) + j + 4 * i]
// for word vector t, with 0 <= i < kSpan. The last vector is filled up with zeros.
//   sums(m)[g] = sum of x[m][k] over group g, in float
template <class Element>
class InterleavedActivations {
 public:
  InterleavedActivations(int64_t tokens, int64_t columns, int group);

  // Sets x[token] = row: columns floats, rounded to Element.
  void set_row(int64_t token, const float* row);

  const Element* data(int64_t token) const {
    return data_.get() + token * stride_;
  }

  const float* sums(int64_t token) const {
    return sums_.get() + token * (columns_ / group_);
  }

  int64_t tokens() const {
    return tokens_;
  }

 private:
  int64_t tokens_, columns_, stride_;
  int group_;
  std::unique_ptr<Element[]> data_;
  std::unique_ptr<float[]> sums_;
};

// For the matrix-matrix kernel: tiles of `tile()` tokens. What the tokens of a tile contribute to step j of word i
// stands together:
//   data(t)[((i * kSteps + j) * tile + m) * kSpan + s] = x[t * tile + m][8 * i + j + 4 * s]       0 <= s < kSpan
//   sums(t)[g * tile + m] = sum of x[t * tile + m][k] over group g
// Tokens behind the last one are zeros.
template <class Element>
class TiledActivations {
 public:
  TiledActivations(int64_t tokens, int64_t columns, int group);

  // Sets x[token] = row: columns floats, rounded to Element.
  void set_row(int64_t token, const float* row);

  const Element* data(int64_t tile) const {
    return data_.get() + tile * tile_ * columns_;
  }

  const float* sums(int64_t tile) const {
    return sums_.get() + tile * tile_ * (columns_ / group_);
  }

  int64_t tokens() const {
    return tokens_;
  }

  int64_t tiles() const {
    return (tokens_ + tile_ - 1) / tile_;
  }

  // Tokens of a tile: kTile, or half as many where there are no more.
  int tile() const {
    return tile_;
  }

  // As many results of kTile tokens x 2 vectors as the registers hold, beside two vectors of weights and one of x.
  static constexpr int kTile = simd::kRegisters == 32 ? 12 : 6;

 private:
  int64_t tokens_, columns_;
  int group_, tile_;
  std::unique_ptr<Element[]> data_;
  std::unique_ptr<float[]> sums_;
};

}  // namespace tiny_llm
