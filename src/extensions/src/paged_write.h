// Writes through a page table as an operation of MLX.
#pragma once

#include "paged_batch.h"
#include "primitive.h"

namespace tiny_llm {

// Writes the new rows k, v: (T, H_kv, 1, D) to their positions' places in the pool. Returns keys and values, which are
// the same memory: whoever holds the arguments sees the new rows too. Not even a pool that others hold is copied, so
// all operations on a pool must be on one stream, whose order keeps an earlier reader safe.
std::vector<mx::array> paged_write(const mx::array& k, const mx::array& v, const mx::array& keys,
                                   const mx::array& values, const PageArrays& pages);

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
