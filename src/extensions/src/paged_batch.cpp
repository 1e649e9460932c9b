#include "paged_batch.h"

#include <algorithm>
#include <stdexcept>

namespace tiny_llm {

namespace {

std::vector<int32_t> integers(const mx::array& a) {
  std::vector<int32_t> all(a.size());
  const int64_t columns = a.shape(-1);
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t row = a.ndim() > 1 ? static_cast<int64_t>(i) / columns * a.strides(0) : 0;
    all[i] = a.data<int32_t>()[row + static_cast<int64_t>(i) % columns * a.strides(-1)];
  }
  return all;
}

}  // namespace

void check_pool(const mx::array& rows, const std::string& what, const mx::array& keys, const mx::array& values,
                const PageArrays& pages) {
  check_activations(rows, what);
  if (rows.ndim() != 4 || rows.shape(2) != 1 || keys.ndim() != 4 || keys.shape() != values.shape() ||
      keys.size() == 0 || rows.shape(3) != keys.shape(3) || rows.shape(1) % keys.shape(1)) {
    throw std::invalid_argument(what + " " + to_string(rows.shape()) + ", keys " + to_string(keys.shape()) +
                                ", values " + to_string(values.shape()) +
                                ": expected (T, H, 1, D) and twice (pages, H_kv, page_size, D), H a multiple of H_kv");
  }
  if (keys.dtype() != rows.dtype() || values.dtype() != rows.dtype()) {
    throw std::invalid_argument(what + ", keys and values must have one dtype");
  }
  const mx::array &table = pages.table, &bounds = pages.bounds, &lengths = pages.lengths;
  if (table.ndim() != 2 || lengths.shape() != mx::Shape{table.shape(0)} ||
      bounds.shape() != mx::Shape{table.shape(0) + 1} || table.dtype() != mx::int32 || bounds.dtype() != mx::int32 ||
      lengths.dtype() != mx::int32) {
    throw std::invalid_argument("table " + to_string(table.shape()) + ", bounds " + to_string(bounds.shape()) +
                                ", lengths " + to_string(lengths.shape()) +
                                ": expected (n, max pages), (n + 1,) and (n,), all int32");
  }
}

PagedBatch::PagedBatch(const mx::array& keys, const mx::array& values, const std::vector<mx::array>& inputs,
                       size_t first, int64_t T)
    : table(integers(inputs[first])),
      bounds(integers(inputs[first + 1])),
      lengths(integers(inputs[first + 2])),
      most_pages(inputs[first].shape(1)),
      pages(keys.shape(0)),
      page_size(keys.shape(2)),
      strides(keys.strides().begin(), keys.strides().end()) {
  if (keys.strides() != values.strides() || strides[3] != 1) {
    throw std::runtime_error("keys and values of a pool must lie alike, the numbers of a row side by side");
  }
  check(T);
}

void PagedBatch::check(int64_t T) const {
  if (bounds.front() != 0 || bounds.back() != T || !std::is_sorted(bounds.begin(), bounds.end())) {
    throw std::runtime_error("bounds must rise from 0 to the " + std::to_string(T) + " rows of the batch");
  }
  for (int64_t i = 0; i < requests(); ++i) {
    const int64_t rows = bounds[i + 1] - bounds[i], used = (lengths[i] + page_size - 1) / page_size;
    if (lengths[i] < rows || used > most_pages) {
      throw std::runtime_error("request " + std::to_string(i) + " of the batch: " + std::to_string(lengths[i]) +
                               " keys, but " + std::to_string(rows) + " rows and " + std::to_string(most_pages) +
                               " pages of " + std::to_string(page_size));
    }
    for (int64_t p = 0; p < (rows ? used : 0); ++p) {
      if (of(i).table[p] < 0 || of(i).table[p] >= pages) {
        throw std::runtime_error("request " + std::to_string(i) + " of the batch: page " +
                                 std::to_string(of(i).table[p]) + " is outside 0 .. " + std::to_string(pages - 1));
      }
    }
  }
}

}  // namespace tiny_llm
