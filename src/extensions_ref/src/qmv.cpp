#include "qmv.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace tiny_llm {

void qmv_scalar(const float* x, const PackedWeights& w, int64_t begin, int64_t end, float* y) {
  // begin task: qmv_scalar
  for (int64_t r = begin; r < end; ++r) {
    float sum = 0.0f;
    for (int64_t k = 0; k < w.columns; ++k) {
      const int64_t group = r * w.groups + k / w.group;
      const uint32_t q = w.row(r)[k / 8] >> (4 * (k % 8)) & 15;
      sum += (w.scales.at(group) * static_cast<float>(q) + w.biases.at(group)) * x[k];
    }
    y[r] = sum;
  }
  // end task: qmv_scalar
}

// The products of `Rows` rows, r, r + apart, r + 2 * apart, ..., with one token:
// y[i * apart] = row (r + i * apart) of W times x.
//
// Takes kLanes groups at a time: so many scales fill one vector. Every load of x serves all the rows, and their sums
// are independent of each other, so that the machine need not wait for one multiply-add to begin the next.
template <int Rows, class Element>
static void multiply_rows(const Element* x, const float* sums, const PackedWeights& w, int64_t r, int64_t apart,
                          float* y) {
  // begin task: multiply_rows
  using N = Nibbles<Element>;
  constexpr int kLanes = simd::kLanes;
  const int shift = std::countr_zero(static_cast<unsigned>(w.group / 8));  // word i belongs to group i >> shift
  const simd::Words lane_group = simd::iota() >> shift;
  simd::Float total[Rows] = {};
  for (int64_t g = 0; g < w.groups; g += kLanes) {
    const int groups = static_cast<int>(std::min<int64_t>(kLanes, w.groups - g));
    const simd::Float group_sums = simd::load(sums + g, groups);
    simd::Float scales[Rows];
    const uint32_t* words[Rows];
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i) {
      const int64_t index = (r + i * apart) * w.groups + g;
      scales[i] = w.scales.load(index, groups);
      total[i] = simd::fma(w.biases.load(index, groups), group_sums, total[i]);
      words[i] = w.words + (index << shift);
    }
    const int count = groups << shift;
    for (int word = 0; word < count; word += kLanes) {
      simd::Words packed[Rows];
      simd::Float dot[Rows] = {};
#pragma GCC unroll 4
      for (int i = 0; i < Rows; ++i) {
        packed[i] = simd::load_words(words[i] + word, count - word);
      }
#pragma GCC unroll 8
      for (int step = 0; step < N::kSteps; ++step, x += kLanes * N::kSpan) {
        const typename N::Operand x_step = N::load(x);
#pragma GCC unroll 4
        for (int i = 0; i < Rows; ++i) {
          dot[i] = N::multiply_add(N::unpack(packed[i], step), x_step, dot[i]);
        }
      }
      const simd::Words group = lane_group + simd::set(static_cast<uint32_t>(word >> shift));
#pragma GCC unroll 4
      for (int i = 0; i < Rows; ++i) {
        total[i] = simd::fma(simd::permute(scales[i], group), dot[i], total[i]);
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i) {
    y[i * apart] = simd::sum(total[i]);
  }
  // end task: multiply_rows
}

template <class Element>
void qmv_rows(const InterleavedActivations<Element>& x, const PackedWeights& w, int64_t begin, int64_t end, float* y,
              int64_t stride) {
  // begin task: qmv_rows
  // Four rows at a time, one from each quarter of the range: each quarter is then read from end to end, and memory that
  // is read so arrives before it is needed. Four neighbouring rows would be short pieces, at half the speed.
  constexpr int kRows = 4;
  const int64_t quarter = (end - begin) / kRows;
  int64_t r = begin;
  for (; r < begin + quarter; ++r) {
    for (int64_t m = 0; m < x.tokens(); ++m) {
      multiply_rows<kRows>(x.data(m), x.sums(m), w, r, quarter, y + m * stride + r);
    }
  }
  for (r = begin + kRows * quarter; r < end; ++r) {
    for (int64_t m = 0; m < x.tokens(); ++m) {
      multiply_rows<1>(x.data(m), x.sums(m), w, r, 1, y + m * stride + r);
    }
  }
  // end task: qmv_rows
}

template void qmv_rows(const InterleavedActivations<float>&, const PackedWeights&, int64_t, int64_t, float*, int64_t);
#if TINY_LLM_BF16_DOT
template void qmv_rows(const InterleavedActivations<Bf16>&, const PackedWeights&, int64_t, int64_t, float*, int64_t);
#endif

}  // namespace tiny_llm
