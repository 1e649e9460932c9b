// Flash attention as an operation of MLX.
#pragma once

#include "arrays.h"
#include "primitive.h"

namespace tiny_llm {

// softmax(scale * Q K^T) V, causal: the L queries are the last L of S positions, query i sees keys 0 .. S - L + i, and
// a query that sees none (L > S) gets zeros. Query heads h * G .. h * G + G - 1 share key/value head h, G = H / H_kv.
//
// q: (B, H, L, D). k, v: (B, H_kv, S, D), all float32 or all bfloat16, with any strides: a view of a cache is read
// where it lies. Returns (B, H, L, D), row-major, in the dtype of q; scores and sums are float32.
// Throws std::invalid_argument naming shapes or dtypes that do not fit. Lazy.
mx::array flash_attention(const mx::array& q, const mx::array& k, const mx::array& v, float scale);

// Inputs: q, k, v. Output: (B, H, L, D).
class FlashAttention : public CpuPrimitive {
 public:
  FlashAttention(mx::Stream stream, float scale) : CpuPrimitive(stream), scale_(scale) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override;

  const char* name() const override {
    return "FlashAttention";
  }

 private:
  float scale_;
};

}  // namespace tiny_llm
