#include "steps.h"

#include <algorithm>
#include <stdexcept>

#include "elementwise.h"
#include "threads.h"

namespace tiny_llm {

Scratch scratch(int64_t n) {
  return std::make_unique_for_overwrite<float[]>(n);
}

ReadRow normalised(const Rows& x, const std::vector<float>& weight, float eps) {
  return [&x, &weight, eps](int64_t token, float* row) {
    x.read(token, row);
    rms_norm(row, weight.data(), eps, static_cast<int64_t>(weight.size()), row);
  };
}

void multiply_into(int64_t tokens, DType x_type, const ReadRow& read, const PackedWeights& w, mx::array& out,
                   Kernel kernel) {
  if (out.dtype() == mx::float32) {
    const Product product[] = {{w, out.data<float>(), w.rows}};
    multiply(tokens, x_type, read, product, kernel);
    return;
  }
  const Scratch y = scratch(tokens * w.rows);
  const Product product[] = {{w, y.get(), w.rows}};
  multiply(tokens, x_type, read, product, kernel);
  write(out, 0, y.get(), tokens * w.rows);
}

void write_sum(const Rows& x, const float* y, int64_t n, mx::array& out) {
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / n);
  parallel_for(x.count(), grain, [&](int64_t begin, int64_t end) {
    std::vector<float> row(n);
    for (int64_t m = begin; m < end; ++m) {
      x.read(m, row.data());
      for (int64_t i = 0; i < n; ++i) {
        row[i] += y[m * n + i];
      }
      write(out, m * n, row.data(), n);
    }
  });
}

void check_norm(const mx::array& norm, int64_t n, const std::string& what) {
  if (norm.shape() != mx::Shape{static_cast<int>(n)}) {
    throw std::invalid_argument(what + " " + to_string(norm.shape()) + " must be (" + std::to_string(n) + ",)");
  }
  dtype_of(norm);
}

void check_positions(const mx::array& cos, const mx::array& sin, int64_t D, int B, int L,
                     const std::vector<int>& offsets) {
  if (offsets.size() != 1 && static_cast<int>(offsets.size()) != B) {
    throw std::invalid_argument(std::to_string(offsets.size()) + " positions for " + std::to_string(B) +
                                " rows: expected one for each row, or one for all");
  }
  for (const mx::array* table : {&cos, &sin}) {
    if (table->ndim() != 2 || table->shape(1) * int64_t{2} != D || table->dtype() != mx::float32) {
      throw std::invalid_argument("cos and sin, here " + to_string(table->shape()) + ", must be (positions, " +
                                  std::to_string(D / 2) + ") float32");
    }
    for (const int64_t offset : offsets) {
      if (offset < 0 || offset + L > table->shape(0)) {
        throw std::invalid_argument("positions " + std::to_string(offset) + " .. " + std::to_string(offset + L - 1) +
                                    " are outside 0 .. " + std::to_string(table->shape(0) - 1) +
                                    ": raise max_positions");
      }
    }
  }
}

void check_stream(const mx::array& x) {
  check_activations(x, "x");
  if (x.ndim() != 3) {
    throw std::invalid_argument("x " + to_string(x.shape()) + " must be (B, L, E)");
  }
}

}  // namespace tiny_llm
