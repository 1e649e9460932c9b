// What flash attention works on: queries, the keys and values of a block, and what is known of each query so far.
//
// Plain structures on raw memory: no MLX, no threads.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dot.h"
#include "pages.h"

namespace tiny_llm {

// Rounds up to a multiple.
inline int64_t padded(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// Rows that the products with many rows take at a time; memory for rows is padded to a multiple of it.
inline constexpr int kRowTile = simd::kRegisters == 32 ? 6 : 3;

inline int64_t padded_rows(int64_t rows) {
  return padded(rows, kRowTile);
}

// Keys of a block: as many scores as fill a few vectors.
inline constexpr int kKeys = 4 * simd::kLanes;

// The queries that are answered together: all share one key/value head. A row is one query of one head.
template <class T>
struct Queries {
  Queries(int64_t rows, int64_t D);

  const T* row(int64_t r) const {
    return data.data() + r * stride;
  }

  T* row(int64_t r) {
    return data.data() + r * stride;
  }

  int64_t rows, D;
  int64_t stride;  // elements from row to row; what stands behind D is zero, and so are some rows behind the last
  std::vector<T> data;
  std::vector<int64_t> visible;  // row r sees keys 0 .. visible[r] - 1
};

// The keys and values of one head where they lie: number d of key s is keys[s * key_stride + d].
//
// With pages it is keys[offset + d], where `page_rows` says the offset of key s, and the strides mean nothing: then
// only `KeyBlock` finds a row.
template <class T>
struct KeysValues {
  const T* keys;
  const T* values;
  int64_t key_stride, value_stride;
  const Pages* pages = nullptr;
};

// What is known of each row after some of its keys: the largest score, the sum of exp(score - largest), and the sum of
// exp(score - largest) * value. A row that has seen no key holds -infinity, 0 and zeros.
struct Softmax {
  Softmax(int64_t rows, int64_t D);

  // Row r of the weighted values.
  float* row(int64_t r) {
    return weighted.data() + r * stride;
  }

  const float* row(int64_t r) const {
    return weighted.data() + r * stride;
  }

  int64_t stride;  // a multiple of the vectors that kernels work on; what stands behind D is zero
  std::vector<float> largest, sum, weighted;
};

// Writes what `count` parts of the keys together say of row r, its weighted values divided by the sum of the weights,
// to result: D numbers. A row that has seen no key gets zeros.
void join(const Softmax* parts, int64_t count, int64_t r, int64_t D, float* result);

// A block of keys and values, put in order for the products with many rows.
template <class T>
class KeyBlock {
 public:
  KeyBlock(int64_t rows, int64_t D);

  // Takes keys first .. first + count - 1, with count <= kKeys, from pages too.
  void load(const KeysValues<T>& kv, int64_t first, int64_t count);

  // scores[r * kKeys + i] = scale * (q row r times key i of the block) for i < count; what stands behind is undefined.
  // There must be room for `padded_rows` of q's rows.
  void scores(const Queries<T>& q, float scale, float* scores) const;

  // Adds weights[r * kKeys + i] times value i of the block, for i < count, to each row of `softmax`. All kKeys weights
  // of a row are read: those from count on must be 0.
  void add_values(const float* weights, int64_t rows, Softmax& softmax) const;

 private:
  using Element = DotElement<T>;

  void find_rows(const KeysValues<T>& kv, int64_t first, int64_t count);

  int64_t D_, count_ = 0;
  bool few_rows_;  // then the numbers are used where they lie
  std::array<const T*, kKeys> keys_, values_;  // row i of the block
  std::vector<Element> turned_keys_;  // [D / kSpan][kKeys][kSpan]
  std::vector<float> float_values_;   // [kKeys][stride of Softmax]
};

}  // namespace tiny_llm
