#include "qmm.h"

#include <algorithm>
#include <stdexcept>

namespace tiny_llm {

// Unpacks rows `row` .. `row` + `rows` - 1 of w, at most Panel::kRows; the panel's other rows repeat the last one.
template <class Element>
static void unpack_panel(const PackedWeights& w, int64_t row, int64_t rows, Panel<Element>& panel) {
  // begin task: unpack_panel
  using N = Nibbles<Element>;
  constexpr int kRows = Panel<Element>::kRows;
  const int64_t row_words = w.columns / 8;
  uint32_t first_word[kRows];  // of each row, counted from the first row's
  for (int64_t i = 0; i < kRows; ++i) {
    const int64_t source = std::min(i, rows - 1);
    first_word[i] = static_cast<uint32_t>(source * row_words);
    for (int64_t g = 0; g < w.groups; ++g) {
      panel.scales[g * kRows + i] = w.scales.at((row + source) * w.groups + g);
      panel.biases[g * kRows + i] = w.biases.at((row + source) * w.groups + g);
    }
  }
  const simd::Words rows_0 = simd::load_words(first_word), rows_1 = simd::load_words(first_word + simd::kLanes);
  Element* to = panel.data.get();
  for (int64_t i = 0; i < row_words; ++i) {
    const simd::Words words_0 = simd::gather(w.row(row) + i, rows_0);
    const simd::Words words_1 = simd::gather(w.row(row) + i, rows_1);
    for (int step = 0; step < N::kSteps; ++step, to += kRows * N::kSpan) {
      N::store(to, N::unpack(words_0, step));
      N::store(to + simd::kLanes * N::kSpan, N::unpack(words_1, step));
    }
  }
  // end task: unpack_panel
}

// The products of one panel with one tile of Tile tokens. total[m][v]: token m with vector v of the panel's rows.
//
// The 2 * Tile sums of a group stay in registers: a vector of weights serves all tokens, a number of x both vectors.
template <int Tile, class Element>
static void multiply_tile(const Element* x, const float* sums, const Panel<Element>& panel, int64_t groups, int group,
                          simd::Float (&total)[Tile][2]) {
  // begin task: multiply_tile
  using N = Nibbles<Element>;
  constexpr int kRows = Panel<Element>::kRows;
  constexpr int kVector = simd::kLanes * N::kSpan;
  const Element* weights = panel.data.get();
  for (int64_t g = 0; g < groups; ++g) {
    simd::Float dot[Tile][2] = {};
    for (int step = 0; step < group / N::kSpan; ++step, weights += 2 * kVector, x += Tile * N::kSpan) {
      const typename N::Operand w_0 = N::load(weights), w_1 = N::load(weights + kVector);
#pragma GCC unroll 12
      for (int m = 0; m < Tile; ++m) {
        const typename N::Operand x_m = N::broadcast(x + m * N::kSpan);
        dot[m][0] = N::multiply_add(w_0, x_m, dot[m][0]);
        dot[m][1] = N::multiply_add(w_1, x_m, dot[m][1]);
      }
    }
    for (int v = 0; v < 2; ++v) {
      const simd::Float scales = simd::load(panel.scales.get() + g * kRows + v * simd::kLanes);
      const simd::Float biases = simd::load(panel.biases.get() + g * kRows + v * simd::kLanes);
#pragma GCC unroll 12
      for (int m = 0; m < Tile; ++m) {
        const simd::Float sum = simd::set(sums[g * Tile + m]);
        total[m][v] = simd::fma(scales, dot[m][v], simd::fma(biases, sum, total[m][v]));
      }
    }
  }
  // end task: multiply_tile
}

// One panel with tile `t` of x, stored to the first `rows` columns of y.
template <int Tile, class Element>
static void panel_tile(const TiledActivations<Element>& x, int64_t t, const Panel<Element>& panel,
                       const PackedWeights& w, int64_t rows, float* y, int64_t stride) {
  simd::Float total[Tile][2] = {};
  multiply_tile<Tile>(x.data(t), x.sums(t), panel, w.groups, w.group, total);
  const int64_t tokens = std::min<int64_t>(Tile, x.tokens() - t * Tile);
  for (int64_t m = 0; m < tokens; ++m) {
    float* to = y + (t * Tile + m) * stride;
    simd::store(to, total[m][0], static_cast<int>(rows));
    if (rows > simd::kLanes) {
      simd::store(to + simd::kLanes, total[m][1], static_cast<int>(rows) - simd::kLanes);
    }
  }
}

template <class Element>
void qmm_rows(const TiledActivations<Element>& x, const PackedWeights& w, int64_t begin, int64_t end, float* y,
              int64_t stride) {
  // begin task: qmm_rows
  constexpr int kTile = TiledActivations<Element>::kTile;
  Panel<Element> panel(w.columns, w.group);
  for (int64_t row = begin; row < end; row += panel.kRows) {
    const int64_t rows = std::min<int64_t>(panel.kRows, end - row);
    unpack_panel(w, row, rows, panel);
    for (int64_t t = 0; t < x.tiles(); ++t) {
      if (x.tile() == kTile) {
        panel_tile<kTile>(x, t, panel, w, rows, y + row, stride);
      } else {
        panel_tile<kTile / 2>(x, t, panel, w, rows, y + row, stride);
      }
    }
  }
  // end task: qmm_rows
}

template void qmm_rows(const TiledActivations<float>&, const PackedWeights&, int64_t, int64_t, float*, int64_t);
#if TINY_LLM_BF16_DOT
template void qmm_rows(const TiledActivations<Bf16>&, const PackedWeights&, int64_t, int64_t, float*, int64_t);
#endif

}  // namespace tiny_llm
