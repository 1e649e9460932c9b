// Attention and writes through a page table as operations of MLX.
#pragma once

#include "arrays.h"
#include "primitive.h"

namespace tiny_llm {

// Whose rows stand where. table: (n, max pages) page numbers. bounds: (n + 1): request i owns query rows bounds[i] ..
// bounds[i + 1] - 1 of a batch of T. lengths: (n): its keys; its rows are the last of these positions. All int32, any
// strides. Their numbers are checked when they are known: what does not fit throws std::runtime_error from mx.eval.
struct PageArrays {
  mx::array table, bounds, lengths;
};

// softmax(scale * Q K^T) V for a batch of requests, each on its own keys, causal. Query heads h * G .. h * G + G - 1
// share key/value head h, G = H / H_kv.
//
// q: (T, H, 1, D), one token per row. keys, values: (pages, H_kv, page_size, D), of which nothing but the rows of the
// requests' positions is read, where they lie. All float32 or all bfloat16.
// Returns (T, H, 1, D), row-major, in the dtype of q; scores and sums are float32.
// Throws std::invalid_argument naming shapes or dtypes that do not fit. Lazy.
mx::array paged_attention(const mx::array& q, const mx::array& keys, const mx::array& values, const PageArrays& pages,
                          float scale);

// Writes the new rows k, v: (T, H_kv, 1, D) to their positions' places in the pool. Returns keys and values, which are
// the same memory: whoever holds the arguments sees the new rows too. Not even a pool that others hold is copied, so
// all operations on a pool must be on one stream, whose order keeps an earlier reader safe.
std::vector<mx::array> paged_write(const mx::array& k, const mx::array& v, const mx::array& keys,
                                   const mx::array& values, const PageArrays& pages);

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

// Inputs: k, v, keys, values, table, bounds, lengths. Outputs: keys and values again.
class PagedWrite : public CpuPrimitive {
 public:
  using CpuPrimitive::CpuPrimitive;

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override;

  const char* name() const override {
    return "PagedWrite";
  }
};

}  // namespace tiny_llm
