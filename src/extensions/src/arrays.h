// From MLX arrays to the raw memory that the kernels work on.
#pragma once

#include <string>
#include <vector>

#include "dtype.h"
#include "mlx/mlx.h"
#include "packed.h"

namespace tiny_llm {

namespace mx = mlx::core;

// Raises std::invalid_argument for anything but float32, float16 and bfloat16.
DType dtype_of(const mx::array& a);

// A matrix as it goes into a primitive: three inputs in this order.
struct PackedArrays {
  mx::array words, scales, biases;
};

// Throws std::invalid_argument, naming shapes and types, where the arrays are no packed 4-bit matrix with `columns`
// columns: words (rows, columns / 8) uint32, scales and biases (rows, columns / group_size) of one float type,
// group_size 32, 64 or 128. `what` names the matrix in the message.
void check_packed(const PackedArrays& w, int64_t columns, int group_size, const std::string& what);

// Throws std::invalid_argument where x is not float32 or bfloat16.
void check_activations(const mx::array& x, const std::string& what);

// The array itself where it is known to be in memory row by row, otherwise a (lazy) copy that is.
mx::array row_major(const mx::array& a);

// `row_major` of each, as inputs of a primitive.
void append_packed(std::vector<mx::array>& inputs, const PackedArrays& w);

// The matrix whose three arrays are inputs[first], inputs[first + 1] and inputs[first + 2], evaluated and row-major.
PackedWeights packed_weights(const std::vector<mx::array>& inputs, size_t first, int group_size);

// Text such as "(2, 3)".
std::string to_string(const mx::Shape& shape);

// Rows of an evaluated array with any strides, read as floats: the last axis is the row, the others are counted
// together, the last of them fastest.
class Rows {
 public:
  explicit Rows(const mx::array& a);

  int64_t count() const {
    return count_;
  }

  // Writes the columns of row `index`, converted to float, to `to`.
  void read(int64_t index, float* to) const;

 private:
  const void* data_;
  DType type_;
  int64_t count_;
  std::vector<int64_t> shape_, strides_;
};

// Writes n floats to a row-major array of float32 or bfloat16, from element `offset` on, rounded to its type.
void write(mx::array& out, int64_t offset, const float* from, int64_t n);

// All the numbers of a small evaluated array, as floats.
std::vector<float> floats(const mx::array& a);

}  // namespace tiny_llm
