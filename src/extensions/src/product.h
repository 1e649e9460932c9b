// Products of many tokens with packed matrices: chooses the kernel, and shares the rows among threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "packed.h"

namespace tiny_llm {

// Writes the activations of one token, in float, to `row`. May be called by several threads at once.
using ReadRow = std::function<void(int64_t token, float* row)>;

// One of several products that share their activations: y[token * stride + r] = W[r] x[token].
struct Product {
  PackedWeights w;
  float* y;
  int64_t stride;
};

// `automatic` takes the vector kernel for a few tokens and the blocked one for more, on all threads of the pool. The
// others run the named kernel on the calling thread alone, for tests and for the ladder of kernels.
enum class Kernel { automatic, scalar, vector, blocked };

// Computes all products. x_type says in which type x is exact: for bfloat16 the kernels may multiply in that type, and
// what `read` gives is rounded to it. All products have the same columns and group.
void multiply(int64_t tokens, DType x_type, const ReadRow& read, std::span<const Product> products,
              Kernel kernel = Kernel::automatic);

}  // namespace tiny_llm
