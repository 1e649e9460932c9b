#include "elementwise.h"

#include <algorithm>
#include <cmath>

#include "simd.h"

namespace tiny_llm {

// Calls step(i, count) for i = 0, kLanes, 2 kLanes, ... below n; count is how many of the lanes are inside.
template <class Step>
static void for_vectors(int64_t n, Step step) {
  int64_t i = 0;
  for (; i + simd::kLanes <= n; i += simd::kLanes) {
    step(i, simd::kLanes);
  }
  if (i < n) {
    step(i, static_cast<int>(n - i));
  }
}

void rms_norm(const float* x, const float* weight, float eps, int64_t n, float* out) {
  simd::Float squares = {};
  for_vectors(n, [&](int64_t i, int count) {
    const simd::Float v = simd::load(x + i, count);
    squares = simd::fma(v, v, squares);
  });
  const simd::Float scale = simd::set(1.0f / std::sqrt(simd::sum(squares) / static_cast<float>(n) + eps));
  for_vectors(n, [&](int64_t i, int count) {
    simd::store(out + i, simd::load(x + i, count) * scale * simd::load(weight + i, count), count);
  });
}

void swiglu(const float* gate, const float* up, int64_t n, float* out) {
  for_vectors(n, [&](int64_t i, int count) {
    const simd::Float g = simd::load(gate + i, count);
    simd::store(out + i, g / (1.0f + simd::exp(-g)) * simd::load(up + i, count), count);
  });
}

void rotate(float* x, const float* cos, const float* sin, int64_t D, bool traditional) {
  const auto turn = [](float& a, float& b, float c, float s) {
    const float turned = a * c - b * s;
    b = a * s + b * c;
    a = turned;
  };
  if (traditional) {
    for (int64_t i = 0; i < D / 2; ++i) {
      turn(x[2 * i], x[2 * i + 1], cos[i], sin[i]);
    }
    return;
  }
  for (int64_t i = 0; i < D / 2; ++i) {
    turn(x[i], x[i + D / 2], cos[i], sin[i]);
  }
}

}  // namespace tiny_llm
