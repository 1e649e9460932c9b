// From the residual stream to queries, keys and values in one operation.
#pragma once

#include "arrays.h"
#include "primitive.h"

namespace tiny_llm {

// The arguments that are no matrices and no activations.
struct QkvOptions {
  int group_size;
  float eps;       // of the input norm
  float head_eps;  // of the query and key norms
  std::vector<int> offsets;  // position of the first token of each row of the batch
  bool traditional;          // which features RoPE pairs: see `rotate`
};

// n = rms_norm(x) * norm; the heads of W_q n and W_k n each normalised, weighted and rotated; the heads of W_v n.
//
// x: (B, L, E) float32 or bfloat16, any strides. norm: (E,). q: (H * D, E), k, v: (H_kv * D, E), packed with one group
// size. q_norm, k_norm: (D,), D even. cos, sin: (positions, D / 2), of which row b of the batch uses offsets[b] ..
// offsets[b] + L - 1. offsets: one for each row of the batch, or one for all.
// Returns q (B, H, L, D), k and v (B, H_kv, L, D), row-major, in the dtype of x; rounded to it once, at the end.
// Throws std::invalid_argument naming shapes, dtypes or positions that do not fit. Lazy.
std::vector<mx::array> fused_qkv(const mx::array& x, const mx::array& norm, const PackedArrays& q,
                                 const PackedArrays& k, const PackedArrays& v, const mx::array& q_norm,
                                 const mx::array& k_norm, const mx::array& cos, const mx::array& sin,
                                 const QkvOptions& options);

// Inputs: x, norm, q_norm, k_norm, cos, sin, then words, scales, biases of q, k and v. Outputs: q, k, v.
class FusedQkv : public CpuPrimitive {
 public:
  FusedQkv(mx::Stream stream, const QkvOptions& options) : CpuPrimitive(stream), options_(options) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override;

  const char* name() const override {
    return "FusedQkv";
  }

 private:
  QkvOptions options_;
};

}  // namespace tiny_llm
