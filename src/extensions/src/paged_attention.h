// Attention through a page table as an operation of MLX.
#pragma once

#include "paged_batch.h"
#include "primitive.h"

namespace tiny_llm {

// softmax(scale * Q K^T) V for a batch of requests, each on its own keys, causal. Query heads h * G .. h * G + G - 1
// share key/value head h, G = H / H_kv.
//
// q: (T, H, 1, D), one token per row. keys, values: (pages, H_kv, page_size, D), of which nothing but the rows of the
// requests' positions is read, where they lie. All float32 or all bfloat16.
// Returns (T, H, 1, D), row-major, in the dtype of q; scores and sums are float32.
// Throws std::invalid_argument naming shapes or dtypes that do not fit. Lazy.
mx::array paged_attention(const mx::array& q, const mx::array& keys, const mx::array& values, const PageArrays& pages,
                          float scale);

// Inputs: q, keys, values, table, bounds, lengths. Output: (T, H, 1, D).
class PagedAttention : public CpuPrimitive {
 public:
  PagedAttention(mx::Stream stream, float scale) : CpuPrimitive(stream), scale_(scale) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override;

  const char* name() const override {
    return "PagedAttention";
  }

 private:
  float scale_;
};

}  // namespace tiny_llm
