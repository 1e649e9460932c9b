#include "product.h"

#include <algorithm>
#include <vector>

#include "qmm.h"
#include "qmv.h"
#include "threads.h"

namespace tiny_llm {

namespace {

// Up to so many tokens, unpacking the weights for each costs less than turning them for the blocked kernel.
constexpr int64_t kMostVectorTokens = 4;
constexpr int64_t kPiecesPerThread = 4;
constexpr int64_t kBlock = 32;  // rows: a panel of the blocked kernel on AVX-512, and a multiple of it elsewhere

using Loop = std::function<void(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& body)>;

void serial_loop(int64_t n, int64_t, const std::function<void(int64_t, int64_t)>& body) {
  body(0, n);
}

// Calls body(product, begin, end) for ranges of rows that cover all rows of all products.
template <class Body>
void for_rows(std::span<const Product> products, int64_t grain, const Loop& loop, Body body) {
  std::vector<int64_t> first_block = {0};
  for (const Product& product : products) {
    first_block.push_back(first_block.back() + (product.w.rows + kBlock - 1) / kBlock);
  }
  loop(first_block.back(), grain, [&](int64_t begin, int64_t end) {
    for (size_t i = 0; i < products.size(); ++i) {
      const int64_t from = std::max(begin, first_block[i]), to = std::min(end, first_block[i + 1]);
      if (from < to) {
        const int64_t last = std::min((to - first_block[i]) * kBlock, products[i].w.rows);
        body(products[i], (from - first_block[i]) * kBlock, last);
      }
    }
  });
}

template <class Element>
void multiply_vector(int64_t tokens, const ReadRow& read, std::span<const Product> products, const Loop& loop) {
  const PackedWeights& w = products[0].w;
  InterleavedActivations<Element> x(tokens, w.columns, w.group);
  std::vector<float> row(w.columns);
  for (int64_t m = 0; m < tokens; ++m) {
    read(m, row.data());
    x.set_row(m, row.data());
  }
  // Few enough pieces that each is a long stretch of memory, and enough that no thread waits long for the last.
  int64_t rows = 0;
  for (const Product& product : products) {
    rows += product.w.rows;
  }
  const int64_t pieces = kPiecesPerThread * ThreadPool::shared().threads();
  const int64_t grain = std::max<int64_t>(1, rows / (kBlock * pieces));
  for_rows(products, grain, loop, [&](const Product& product, int64_t begin, int64_t end) {
    qmv_rows(x, product.w, begin, end, product.y, product.stride);
  });
}

template <class Element>
void multiply_blocked(int64_t tokens, const ReadRow& read, std::span<const Product> products, const Loop& loop) {
  const PackedWeights& w = products[0].w;
  TiledActivations<Element> x(tokens, w.columns, w.group);
  loop(x.tiles(), 1, [&](int64_t begin, int64_t end) {
    std::vector<float> row(w.columns);
    for (int64_t m = begin * x.tile(); m < std::min(end * x.tile(), tokens); ++m) {
      read(m, row.data());
      x.set_row(m, row.data());
    }
  });
  for_rows(products, 1, loop, [&](const Product& product, int64_t begin, int64_t end) {
    qmm_rows(x, product.w, begin, end, product.y, product.stride);
  });
}

void multiply_scalar(int64_t tokens, const ReadRow& read, std::span<const Product> products) {
  std::vector<float> row(products[0].w.columns);
  for (int64_t m = 0; m < tokens; ++m) {
    read(m, row.data());
    for (const Product& product : products) {
      qmv_scalar(row.data(), product.w, 0, product.w.rows, product.y + m * product.stride);
    }
  }
}

template <class Element>
void multiply_as(int64_t tokens, const ReadRow& read, std::span<const Product> products, Kernel kernel) {
  const Loop loop = kernel == Kernel::automatic ? Loop(parallel_for) : Loop(serial_loop);
  if (kernel == Kernel::vector || (kernel == Kernel::automatic && tokens <= kMostVectorTokens)) {
    multiply_vector<Element>(tokens, read, products, loop);
  } else {
    multiply_blocked<Element>(tokens, read, products, loop);
  }
}

}  // namespace

void multiply(int64_t tokens, DType x_type, const ReadRow& read, std::span<const Product> products, Kernel kernel) {
  if (tokens == 0) {
    return;
  }
  if (kernel == Kernel::scalar) {
    multiply_scalar(tokens, read, products);
    return;
  }
#if TINY_LLM_BF16_DOT
  if (x_type == DType::bfloat16) {
    multiply_as<Bf16>(tokens, read, products, kernel);
    return;
  }
#endif
  multiply_as<float>(tokens, read, products, kernel);
}

}  // namespace tiny_llm
