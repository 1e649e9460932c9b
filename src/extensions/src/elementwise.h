// What stands between the products of a block, on rows of floats, without threads.
#pragma once

#include <cstdint>

namespace tiny_llm {

// out = x / sqrt(mean(x^2) + eps) * weight. n floats each; out may be x.
void rms_norm(const float* x, const float* weight, float eps, int64_t n, float* out);

// out = gate / (1 + exp(-gate)) * up. n floats each; out may be gate or up.
void swiglu(const float* gate, const float* up, int64_t n, float* out);

// Rotates D features by the angles of one position, in place. cos, sin: D / 2 floats.
// traditional: pair (2i, 2i + 1) turns by angle i; otherwise pair (i, i + D / 2).
void rotate(float* x, const float* cos, const float* sin, int64_t D, bool traditional);

}  // namespace tiny_llm
