#include "flash_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace tiny_llm {

template <class T>
void flash_attention_rows(const Queries<T>& q, const KeysValues<T>& kv, int64_t first, int64_t last, float scale,
                          Softmax& softmax) {
  // begin task: flash_attention_rows
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  KeyBlock<T> block(q.rows, q.D);
  std::vector<float> scores(padded_rows(q.rows) * kKeys);
  for (int64_t begin = first; begin < last; begin += kKeys) {
    block.load(kv, begin, std::min<int64_t>(kKeys, last - begin));
    block.scores(q, scale, scores.data());
    for (int64_t r = 0; r < q.rows; ++r) {
      float* row = scores.data() + r * kKeys;
      const int64_t seen = std::clamp<int64_t>(std::min(q.visible[r], last) - begin, 0, kKeys);
      std::fill(row + seen, row + kKeys, kNothing);
      if (seen == 0) {
        std::fill_n(row, kKeys, 0.0f);
        continue;
      }
      simd::Float highest = simd::set(kNothing);
      for (int i = 0; i < kKeys; i += simd::kLanes) {
        highest = simd::max(highest, simd::load(row + i));
      }
      const float largest = std::max(softmax.largest[r], simd::max(highest));
      const float keep = std::exp(softmax.largest[r] - largest);
      simd::Float sums = {};
      for (int i = 0; i < kKeys; i += simd::kLanes) {
        const simd::Float weights = simd::exp(simd::load(row + i) - simd::set(largest));
        simd::store(row + i, weights);
        sums += weights;
      }
      softmax.largest[r] = largest;
      softmax.sum[r] = softmax.sum[r] * keep + simd::sum(sums);
      if (keep != 1.0f) {
        for (int64_t d = 0; d < softmax.stride; d += simd::kLanes) {
          simd::store(softmax.row(r) + d, simd::load(softmax.row(r) + d) * keep);
        }
      }
    }
    block.add_values(scores.data(), q.rows, softmax);
  }
  // end task: flash_attention_rows
}

template void flash_attention_rows(const Queries<float>&, const KeysValues<float>&, int64_t, int64_t, float, Softmax&);
template void flash_attention_rows(const Queries<Bf16>&, const KeysValues<Bf16>&, int64_t, int64_t, float, Softmax&);

}  // namespace tiny_llm
