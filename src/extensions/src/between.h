// What stands between the products of a block, one operation each, for products that somebody else computes.
//
// float32 or bfloat16, any strides; results are row-major in the dtype of the input, and rounded once, at the end.
// All functions are lazy, and throw std::invalid_argument (a ValueError in Python) where arguments do not fit.
#pragma once

#include "arrays.h"
#include "primitive.h"

namespace tiny_llm {

// x / sqrt(mean(x^2) + eps) * weight, on the last axis. x: (..., n), weight: (n,).
mx::array normalise(const mx::array& x, const mx::array& weight, float eps);

// silu(gate) * up, element by element. Both of one shape.
mx::array gated(const mx::array& gate, const mx::array& up);

struct HeadOptions {
  float eps;
  std::vector<int> offsets;  // position of the first token of each row of the batch, or one for all
  bool traditional;
};

// Heads of queries or keys, each normalised, weighted and rotated. y: (B, L, H * D), norm: (D,), cos, sin:
// (positions, D / 2). Returns (B, H, L, D).
mx::array rotated_heads(const mx::array& y, const mx::array& norm, const mx::array& cos, const mx::array& sin,
                        const HeadOptions& options);

// Inputs: x, weight. Output: as x.
class Normalise : public CpuPrimitive {
 public:
  Normalise(mx::Stream stream, float eps) : CpuPrimitive(stream), eps_(eps) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override;

  const char* name() const override {
    return "Normalise";
  }

 private:
  float eps_;
};

// Inputs: gate, up. Output: as gate.
class Gated : public CpuPrimitive {
 public:
  using CpuPrimitive::CpuPrimitive;

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override;

  const char* name() const override {
    return "Gated";
  }
};

// Inputs: y, norm, cos, sin. Output: (B, H, L, D).
class RotatedHeads : public CpuPrimitive {
 public:
  RotatedHeads(mx::Stream stream, const HeadOptions& options) : CpuPrimitive(stream), options_(options) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override;

  const char* name() const override {
    return "RotatedHeads";
  }

 private:
  HeadOptions options_;
};

}  // namespace tiny_llm
