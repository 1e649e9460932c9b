// y = x W^T with packed 4-bit W, as an operation of MLX.
#pragma once

#include <string>

#include "arrays.h"
#include "primitive.h"
#include "product.h"

namespace tiny_llm {

// Adds y = x W^T to the graph; nothing is computed before y is needed.
//
// x: (..., I) float32 or bfloat16, any strides. w: (O, I) packed in groups of `group_size`.
// kernel: "auto", or "scalar", "vector" or "blocked" for that kernel on one thread.
// Returns (..., O) in the dtype of x; sums are float32.
// Throws std::invalid_argument (a ValueError in Python) naming shapes and dtypes that do not fit, and unknown kernels.
mx::array quantized_matmul(const mx::array& x, const PackedArrays& w, int group_size, const std::string& kernel);

// What the graph holds for it. Inputs: x, words, scales, biases. Output: y.
class QuantizedMatmul : public CpuPrimitive {
 public:
  QuantizedMatmul(mx::Stream stream, int group_size, Kernel kernel)
      : CpuPrimitive(stream), group_size_(group_size), kernel_(kernel) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override;

  const char* name() const override {
    return "QuantizedMatmul";
  }

 private:
  int group_size_;
  Kernel kernel_;
};

}  // namespace tiny_llm
