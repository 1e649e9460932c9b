// A matrix of 4-bit weights where it lies in memory, in MLX's packing.
#pragma once

#include <cstdint>

#include "dtype.h"
#include "simd.h"

namespace tiny_llm {

// One number per group of a row, of any of the three types.
struct GroupValues {
  const void* data;
  DType type;

  float at(int64_t index) const {
    switch (type) {
      case DType::float32:
        return static_cast<const float*>(data)[index];
      case DType::float16:
        return to_float(static_cast<const Half*>(data)[index]);
      default:
        return to_float(static_cast<const Bf16*>(data)[index]);
    }
  }

  // The `count` numbers from `index` on, as the first lanes of a vector; the other lanes are 0.
  simd::Float load(int64_t index, int count) const {
    switch (type) {
      case DType::float32:
        return simd::load(static_cast<const float*>(data) + index, count);
      case DType::float16:
        return simd::load(static_cast<const Half*>(data) + index, count);
      default:
        return simd::load(static_cast<const Bf16*>(data) + index, count);
    }
  }
};

// W[row][k] = scales[row][k / group] * q + biases[row][k / group], where q is the nibble of number k:
// bits 4 * (k % 8) .. 4 * (k % 8) + 3 of words[row][k / 8].
//
// words: (rows, columns / 8). scales, biases: (rows, columns / group). All row-major without gaps.
// group: 32, 64 or 128. columns is a multiple of it. rows is any number.
struct PackedWeights {
  const uint32_t* words;
  GroupValues scales;
  GroupValues biases;
  int64_t rows;
  int64_t columns;
  int group;
  int64_t groups;  // of a row: columns / group

  const uint32_t* row(int64_t r) const {
    return words + r * (columns / 8);
  }
};

}  // namespace tiny_llm
