// Whole steps of a block as one operation each: what stands between two products never leaves the operation.
//
// x is the residual stream (B, L, E), float32 or bfloat16, with any strides; results have its dtype. Between the
// products everything is float32, except that each product rounds what it multiplies to the dtype of x.
// All functions are lazy, and throw std::invalid_argument (a ValueError in Python), naming shapes and dtypes, where
// arguments do not fit.
#pragma once

#include "arrays.h"
#include "primitive.h"

namespace tiny_llm {

// x + W_down (silu(W_gate n) * W_up n) with n = rms_norm(x) * norm.
// norm: (E,). gate, up: (I, E), down: (E, I), packed with one group size. Returns (B, L, E).
mx::array fused_mlp(const mx::array& x, const mx::array& norm, const PackedArrays& gate, const PackedArrays& up,
                    const PackedArrays& down, int group_size, float eps);

// x + W_o (heads of `attended`, joined).
// attended: (B, H, L, D) in the dtype of x, any strides. w: (E, H * D) packed. Returns (B, L, E).
mx::array fused_output(const mx::array& x, const mx::array& attended, const PackedArrays& w, int group_size);

// W (rms_norm(x) * norm): the final norm and the head. norm: (E,). w: (V, E) packed. Returns (B, L, V).
mx::array fused_head(const mx::array& x, const mx::array& norm, const PackedArrays& w, int group_size, float eps);

// Inputs: x, norm, then words, scales, biases of gate, up and down. Output: (B, L, E).
class FusedMlp : public CpuPrimitive {
 public:
  FusedMlp(mx::Stream stream, int group_size, float eps) : CpuPrimitive(stream), group_size_(group_size), eps_(eps) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override;

  const char* name() const override {
    return "FusedMlp";
  }

 private:
  int group_size_;
  float eps_;
};

// Inputs: x, attended, then words, scales, biases. Output: (B, L, E).
class FusedOutput : public CpuPrimitive {
 public:
  FusedOutput(mx::Stream stream, int group_size) : CpuPrimitive(stream), group_size_(group_size) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override;

  const char* name() const override {
    return "FusedOutput";
  }

 private:
  int group_size_;
};

// Inputs: x, norm, then words, scales, biases. Output: (B, L, V).
class FusedHead : public CpuPrimitive {
 public:
  FusedHead(mx::Stream stream, int group_size, float eps)
      : CpuPrimitive(stream), group_size_(group_size), eps_(eps) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override;

  const char* name() const override {
    return "FusedHead";
  }

 private:
  int group_size_;
  float eps_;
};

}  // namespace tiny_llm
