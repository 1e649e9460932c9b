// The steps between the products of a fused operation, on evaluated arrays.
#pragma once

#include <memory>
#include <vector>

#include "arrays.h"
#include "product.h"

namespace tiny_llm {

// Memory for n floats, not set to anything.
using Scratch = std::unique_ptr<float[]>;
Scratch scratch(int64_t n);

// Reads rows of x and normalises them: rms_norm(x[token]) * weight. Holds copies of neither: both must outlive it.
ReadRow normalised(const Rows& x, const std::vector<float>& weight, float eps);

// out[token] = W (what `read` gives for token), rounded to the dtype of out, which is row-major.
void multiply_into(int64_t tokens, DType x_type, const ReadRow& read, const PackedWeights& w, mx::array& out,
                   Kernel kernel = Kernel::automatic);

// out[token] = x[token] + y[token] for all tokens, on all threads. y: (tokens, n) without gaps; out: row-major.
void write_sum(const Rows& x, const float* y, int64_t n, mx::array& out);

// Throws std::invalid_argument unless `norm` is a float array (n,). `what` names it in the message.
void check_norm(const mx::array& norm, int64_t n, const std::string& what);

// Throws std::invalid_argument unless cos and sin are float32 (positions, D / 2), and hold the positions of B rows of L
// tokens. offsets: the position of the first token of each row, or one for all.
void check_positions(const mx::array& cos, const mx::array& sin, int64_t D, int B, int L,
                     const std::vector<int>& offsets);

// Throws std::invalid_argument unless x is float32 or bfloat16 (B, L, E).
void check_stream(const mx::array& x);

}  // namespace tiny_llm
