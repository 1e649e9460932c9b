// Batches over a pool of pages: the arrays that say whose rows stand where, and their numbers once they are known.
#pragma once

#include <string>
#include <vector>

#include "arrays.h"
#include "pages.h"

namespace tiny_llm {

// Whose rows stand where. table: (n, max pages) page numbers. bounds: (n + 1): request i owns query rows bounds[i] ..
// bounds[i + 1] - 1 of a batch of T. lengths: (n): its keys; its rows are the last of these positions. All int32, any
// strides. Their numbers are checked when they are known: what does not fit throws std::runtime_error from mx.eval.
struct PageArrays {
  mx::array table, bounds, lengths;
};

// Throws std::invalid_argument, naming shapes and dtypes, unless rows is (T, H, 1, D), keys and values are twice
// (pages, H_kv, page_size, D) of the same float type, H is a multiple of H_kv, and the page arrays belong together.
void check_pool(const mx::array& rows, const std::string& what, const mx::array& keys, const mx::array& values,
                const PageArrays& pages);

// A batch of T rows over a pool, all evaluated. Of `inputs`, the ones from `first` on are table, bounds and lengths.
// Throws std::runtime_error where numbers do not fit: no page outside the pool is ever read.
struct PagedBatch {
  PagedBatch(const mx::array& keys, const mx::array& values, const std::vector<mx::array>& inputs, size_t first,
             int64_t T);

  int64_t requests() const {
    return static_cast<int64_t>(lengths.size());
  }

  Pages of(int64_t request) const {
    return {table.data() + request * most_pages, page_size, strides[0], strides[2]};
  }

  std::vector<int32_t> table, bounds, lengths;
  int64_t most_pages, pages, page_size;
  std::vector<int64_t> strides;  // of keys and values: page, head, position, feature

 private:
  void check(int64_t T) const;
};

}  // namespace tiny_llm
