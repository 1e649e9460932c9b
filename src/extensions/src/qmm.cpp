// This file is yours to edit. Read book/src/week2-04-cpu-kernels.md.

#include "qmm.h"

#include <algorithm>
#include <stdexcept>

namespace tiny_llm {

// Unpacks rows `row` .. `row` + `rows` - 1 of w, at most Panel::kRows; the panel's other rows repeat the last one.
template <class Element>
static void unpack_panel(const PackedWeights& w, int64_t row, int64_t rows, Panel<Element>& panel) {
  // begin task: unpack_panel
  throw std::runtime_error("Week 2 Day 4 Task 3: unpack_panel - see book/src/week2-04-cpu-kernels.md#task-3");
  // end task: unpack_panel
}

// The products of one panel with one tile of Tile tokens. total[m][v]: token m with vector v of the panel's rows.
//
// The 2 * Tile sums of a group stay in registers: a vector of weights serves all tokens, a number of x both vectors.
template <int Tile, class Element>
static void multiply_tile(const Element* x, const float* sums, const Panel<Element>& panel, int64_t groups, int group,
                          simd::Float (&total)[Tile][2]) {
  // begin task: multiply_tile
  throw std::runtime_error("Week 2 Day 4 Task 3: multiply_tile - see book/src/week2-04-cpu-kernels.md#task-3");
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
  throw std::runtime_error("Week 2 Day 4 Task 3: qmm_rows - see book/src/week2-04-cpu-kernels.md#task-3");
  // end task: qmm_rows
}

template void qmm_rows(const TiledActivations<float>&, const PackedWeights&, int64_t, int64_t, float*, int64_t);
#if TINY_LLM_BF16_DOT
template void qmm_rows(const TiledActivations<Bf16>&, const PackedWeights&, int64_t, int64_t, float*, int64_t);
#endif

}  // namespace tiny_llm
