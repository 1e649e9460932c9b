#include "activations.h"

#include <algorithm>

namespace tiny_llm {

namespace {

void round_to(float x, float* to) {
  *to = x;
}

[[maybe_unused]] void round_to(float x, Bf16* to) {
  *to = to_bf16(x);
}

// Rounds a row to Element, puts it in place, and adds up its groups.
// place(i) is where word i's elements of step 0 begin, those of step j stand j * step_stride further on.
template <class Element, class Place>
void put_row(const float* row, int64_t columns, int group, int64_t step_stride, Place place, float* sums,
             int64_t sum_stride) {
  using N = Nibbles<Element>;
  for (int64_t g = 0; g < columns / group; ++g) {
    float sum = 0.0f;
    for (int64_t i = g * group / 8; i < (g + 1) * group / 8; ++i) {
      Element* to = place(i);
      for (int k = 0; k < 8; ++k) {
        Element* element = to + (k % N::kSteps) * step_stride + k / N::kSteps;
        round_to(row[8 * i + k], element);
        sum += to_float(*element);
      }
    }
    sums[g * sum_stride] = sum;
  }
}

}  // namespace

template <class Element>
InterleavedActivations<Element>::InterleavedActivations(int64_t tokens, int64_t columns, int group)
    : tokens_(tokens), columns_(columns), group_(group) {
  constexpr int64_t kVector = 8 * simd::kLanes;
  stride_ = (columns + kVector - 1) / kVector * kVector;
  data_ = std::make_unique_for_overwrite<Element[]>(tokens * stride_);
  sums_ = std::make_unique_for_overwrite<float[]>(tokens * (columns / group));
}

template <class Element>
void InterleavedActivations<Element>::set_row(int64_t token, const float* row) {
  constexpr int kLanes = simd::kLanes;
  constexpr int kSpan = Nibbles<Element>::kSpan;
  Element* data = data_.get() + token * stride_;
  if (stride_ != columns_) {
    std::fill_n(data + stride_ - 8 * kLanes, 8 * kLanes, Element{});
  }
  const auto place = [data](int64_t i) { return data + i / kLanes * (8 * kLanes) + i % kLanes * kSpan; };
  put_row<Element>(row, columns_, group_, kLanes * kSpan, place, sums_.get() + token * (columns_ / group_), 1);
}

template <class Element>
TiledActivations<Element>::TiledActivations(int64_t tokens, int64_t columns, int group)
    : tokens_(tokens), columns_(columns), group_(group), tile_(tokens > kTile / 2 ? kTile : kTile / 2) {
  const int64_t padded = tiles() * tile_;
  data_ = std::make_unique_for_overwrite<Element[]>(padded * columns);
  sums_ = std::make_unique_for_overwrite<float[]>(padded * (columns / group));
  if (padded != tokens) {
    std::fill_n(data_.get() + (tiles() - 1) * tile_ * columns, tile_ * columns, Element{});
    std::fill_n(sums_.get() + (tiles() - 1) * tile_ * (columns / group), tile_ * (columns / group), 0.0f);
  }
}

template <class Element>
void TiledActivations<Element>::set_row(int64_t token, const float* row) {
  using N = Nibbles<Element>;
  const int64_t t = token / tile_, m = token % tile_;
  Element* data = data_.get() + t * tile_ * columns_ + m * N::kSpan;
  const int64_t stride = static_cast<int64_t>(tile_) * N::kSpan;
  const auto place = [data, stride](int64_t i) { return data + i * N::kSteps * stride; };
  put_row<Element>(row, columns_, group_, stride, place, sums_.get() + t * tile_ * (columns_ / group_) + m, tile_);
}

template class InterleavedActivations<float>;
template class TiledActivations<float>;
#if TINY_LLM_BF16_DOT
template class InterleavedActivations<Bf16>;
template class TiledActivations<Bf16>;
#endif

}  // namespace tiny_llm
