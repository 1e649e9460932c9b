#include "key_block.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tiny_llm {

namespace {

// Up to so many rows, putting a block in order takes longer than it saves.
constexpr int64_t kFewRows = 8;
constexpr int kVectors = kKeys / simd::kLanes;

template <class Element, class T>
Element as(T x) {
  if constexpr (std::is_same_v<Element, T>) {
    return x;
  } else {
    return to_float(x);
  }
}

constexpr int64_t kAhead = 4;

// Asks for a row that will be read soon: the processor itself guesses no row of another page.
template <class T>
void fetch(const T* row, int64_t n) {
  for (int64_t i = 0; i < n; i += 64 / sizeof(T)) {
    __builtin_prefetch(row + i);
  }
}

// Lane sums of a times b, n numbers each.
template <class T>
simd::Float dot(const T* a, const T* b, int64_t n) {
  simd::Float acc = {};
  int64_t i = 0;
  if constexpr (std::is_same_v<DotElement<T>, T>) {
    constexpr int kVector = simd::kLanes * Dot<T>::kSpan;
    for (; i + kVector <= n; i += kVector) {
      acc = Dot<T>::multiply_add(Dot<T>::load(a + i), Dot<T>::load(b + i), acc);
    }
  }
  for (; i < n; i += simd::kLanes) {
    const int count = static_cast<int>(std::min<int64_t>(simd::kLanes, n - i));
    acc = simd::fma(simd::load(a + i, count), simd::load(b + i, count), acc);
  }
  return acc;
}

// Adds weights[i] * values[i][d + lane] to `to`, for up to kVectors vectors of features, `lanes` of which exist.
template <class T>
void add_few(const float* weights, const T* const* values, int64_t d, int64_t count, int64_t lanes, float* to) {
  simd::Float total[kVectors];
  int counts[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    counts[v] = static_cast<int>(std::clamp<int64_t>(lanes - v * simd::kLanes, 0, simd::kLanes));
    total[v] = simd::load(to + v * simd::kLanes);
  }
  for (int64_t i = 0; i < count; ++i) {
    const simd::Float weight = simd::set(weights[i]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      total[v] = simd::fma(weight, simd::load(values[i] + d + v * simd::kLanes, counts[v]), total[v]);
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    simd::store(to + v * simd::kLanes, total[v]);
  }
}

}  // namespace

template <class T>
Queries<T>::Queries(int64_t rows, int64_t D)
    : rows(rows), D(D), stride(padded(D, 2)), data(padded_rows(rows) * stride), visible(rows) {}

Softmax::Softmax(int64_t rows, int64_t D)
    : stride(padded(D, kKeys)),
      largest(rows, -std::numeric_limits<float>::infinity()),
      sum(rows),
      weighted(padded_rows(rows) * stride) {}

void join(const Softmax* parts, int64_t count, int64_t r, int64_t D, float* result) {
  float largest = parts[0].largest[r];
  for (int64_t p = 1; p < count; ++p) {
    largest = std::max(largest, parts[p].largest[r]);
  }
  float sum = 0.0f;
  std::fill_n(result, D, 0.0f);
  for (int64_t p = 0; p < count; ++p) {
    if (parts[p].sum[r] > 0.0f) {
      const float factor = std::exp(parts[p].largest[r] - largest);
      sum += factor * parts[p].sum[r];
      for (int64_t d = 0; d < D; ++d) {
        result[d] += factor * parts[p].row(r)[d];
      }
    }
  }
  const float scale_back = sum > 0.0f ? 1.0f / sum : 0.0f;
  for (int64_t d = 0; d < D; ++d) {
    result[d] *= scale_back;
  }
}

template <class T>
KeyBlock<T>::KeyBlock(int64_t rows, int64_t D) : D_(D), few_rows_(rows <= kFewRows) {
  if (!few_rows_) {
    turned_keys_.resize(padded(D, 2) * kKeys);
    float_values_.resize(padded(D, kKeys) * kKeys);
  }
}

template <class T>
void KeyBlock<T>::find_rows(const KeysValues<T>& kv, int64_t first, int64_t count) {
  std::array<int64_t, kKeys> offsets;
  if (kv.pages) {
    page_rows(*kv.pages, first, count, offsets.data());
  }
  for (int64_t i = 0; i < count; ++i) {
    keys_[i] = kv.keys + (kv.pages ? offsets[i] : (first + i) * kv.key_stride);
    values_[i] = kv.values + (kv.pages ? offsets[i] : (first + i) * kv.value_stride);
  }
}

template <class T>
void KeyBlock<T>::load(const KeysValues<T>& kv, int64_t first, int64_t count) {
  constexpr int kSpan = Dot<Element>::kSpan;
  find_rows(kv, first, count);
  count_ = count;
  if (few_rows_) {
    return;
  }
  for (int64_t d = 0; d < D_; ++d) {
    Element* to = turned_keys_.data() + d / kSpan * kKeys * kSpan + d % kSpan;
    for (int64_t i = 0; i < count; ++i) {
      to[i * kSpan] = as<Element>(keys_[i][d]);
    }
  }
  const int64_t stride = padded(D_, kKeys);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t d = 0; d < D_; d += simd::kLanes) {
      const int lanes = static_cast<int>(std::min<int64_t>(simd::kLanes, D_ - d));
      simd::store(float_values_.data() + i * stride + d, simd::load(values_[i] + d, lanes));
    }
  }
  std::fill(float_values_.begin() + count * stride, float_values_.end(), 0.0f);  // old values may be no numbers
}

template <class T>
void KeyBlock<T>::scores(const Queries<T>& q, float scale, float* scores) const {
  if (few_rows_) {
    for (int64_t i = 0; i < count_; ++i) {
      fetch(keys_[std::min(i + kAhead, count_ - 1)], D_);
      fetch(values_[i], D_);
      for (int64_t r = 0; r < q.rows; ++r) {
        scores[r * kKeys + i] = scale * simd::sum(dot(q.row(r), keys_[i], D_));
      }
    }
    return;
  }
  using D = Dot<Element>;
  for (int64_t r = 0; r < q.rows; r += kRowTile) {
    simd::Float total[kRowTile][kVectors] = {};
    for (int64_t step = 0; step < padded(D_, D::kSpan) / D::kSpan; ++step) {
      typename D::Operand keys[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        keys[v] = D::load(turned_keys_.data() + (step * kVectors + v) * simd::kLanes * D::kSpan);
      }
#pragma GCC unroll 6
      for (int m = 0; m < kRowTile; ++m) {
        Element pair[D::kSpan];
        for (int s = 0; s < D::kSpan; ++s) {
          pair[s] = as<Element>(q.row(r + m)[step * D::kSpan + s]);
        }
        const typename D::Operand x = D::broadcast(pair);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          total[m][v] = D::multiply_add(keys[v], x, total[m][v]);
        }
      }
    }
    for (int m = 0; m < kRowTile; ++m) {
      for (int v = 0; v < kVectors; ++v) {
        simd::store(scores + (r + m) * kKeys + v * simd::kLanes, total[m][v] * scale);
      }
    }
  }
}

template <class T>
void KeyBlock<T>::add_values(const float* weights, int64_t rows, Softmax& softmax) const {
  if (few_rows_) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t d = 0; d < D_; d += kKeys) {
        add_few(weights + r * kKeys, values_.data(), d, count_, D_ - d, softmax.row(r) + d);
      }
    }
    return;
  }
  for (int64_t r = 0; r < rows; r += kRowTile) {
    for (int64_t d = 0; d < softmax.stride; d += kKeys) {  // kVectors vectors of features
      simd::Float total[kRowTile][kVectors];
#pragma GCC unroll 6
      for (int m = 0; m < kRowTile; ++m) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          total[m][v] = simd::load(softmax.row(r + m) + d + v * simd::kLanes);
        }
      }
      for (int64_t i = 0; i < count_; ++i) {
        simd::Float values[kVectors];
        for (int v = 0; v < kVectors; ++v) {
          values[v] = simd::load(float_values_.data() + i * softmax.stride + d + v * simd::kLanes);
        }
#pragma GCC unroll 6
        for (int m = 0; m < kRowTile; ++m) {
          const simd::Float weight = simd::set(weights[(r + m) * kKeys + i]);
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) {
            total[m][v] = simd::fma(weight, values[v], total[m][v]);
          }
        }
      }
#pragma GCC unroll 6
      for (int m = 0; m < kRowTile; ++m) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          simd::store(softmax.row(r + m) + d + v * simd::kLanes, total[m][v]);
        }
      }
    }
  }
}

template struct Queries<float>;
template struct Queries<Bf16>;
template class KeyBlock<float>;
template class KeyBlock<Bf16>;

}  // namespace tiny_llm
