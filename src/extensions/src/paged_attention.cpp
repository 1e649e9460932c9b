#include "paged_attention.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "flash_attention.h"
#include "paged_batch.h"
#include "ragged.h"
#include "threads.h"

namespace tiny_llm {

namespace {

using Arrays = std::vector<mx::array>;

// Whether pieces i - 1 and i answer the same queries.
bool same_queries(const std::vector<Piece>& pieces, size_t i) {
  return i > 0 && i < pieces.size() && pieces[i].query == pieces[i - 1].query;
}

// An order in which no thread begins a long piece last.
std::vector<size_t> long_first(const std::vector<Piece>& pieces) {
  const auto cost = [&](size_t i) { return (pieces[i].last_key - pieces[i].first_key) * pieces[i].queries; };
  std::vector<size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return cost(a) > cost(b); });
  return order;
}

template <class T>
struct Attention {
  Attention(const Arrays& in, mx::array& out, float scale)
      : q(in[0]), keys(in[1]), values(in[2]), out(out), scale(scale), batch(keys, values, in, 3, q.shape(0)) {}

  const mx::array &q, &keys, &values;
  mx::array& out;
  float scale;
  PagedBatch batch;
  int64_t H = q.shape(1), D = q.shape(3), H_kv = keys.shape(1), G = H / H_kv;

  Queries<T> queries(const Piece& piece, int64_t kv_head) const {
    Queries<T> rows(G * piece.queries, D);
    for (int64_t r = 0; r < rows.rows; ++r) {
      const T* from = static_cast<const T*>(q.data<void>()) + (piece.query + r / G) * q.strides(0) +
                      (kv_head * G + r % G) * q.strides(1);
      for (int64_t d = 0; d < D; ++d) {
        rows.row(r)[d] = from[d * q.strides(3)];
      }
      rows.visible[r] = piece.visible + r / G;
    }
    return rows;
  }

  Softmax work(const Piece& piece, int64_t kv_head) const {
    const Queries<T> rows = queries(piece, kv_head);
    const Pages pages = batch.of(piece.request);
    const int64_t head = kv_head * batch.strides[1];
    const KeysValues<T> kv = {static_cast<const T*>(keys.data<void>()) + head,
                              static_cast<const T*>(values.data<void>()) + head, 0, 0, &pages};
    Softmax softmax(rows.rows, D);
    flash_attention_rows(rows, kv, piece.first_key, piece.last_key, scale, softmax);
    return softmax;
  }

  void finish(const Piece& piece, int64_t kv_head, const Softmax* parts, int64_t count) const {
    std::vector<float> row(D);
    for (int64_t r = 0; r < G * piece.queries; ++r) {
      join(parts, count, r, D, row.data());
      write(out, ((piece.query + r / G) * H + kv_head * G + r % G) * D, row.data(), D);
    }
  }

  void run() const {
    const std::vector<Piece> pieces = ragged_pieces({batch.bounds.data(), batch.lengths.data(), batch.requests()}, H_kv,
                                                    ThreadPool::shared().threads());
    const std::vector<size_t> order = long_first(pieces);
    // What is known of queries that several pieces share, for each head; empty for all others.
    std::vector<std::vector<Softmax>> parts(H_kv, std::vector<Softmax>(pieces.size(), Softmax(0, D)));
    parallel_for(static_cast<int64_t>(pieces.size()) * H_kv, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const size_t piece = order[i / H_kv];
        const int64_t head = i % H_kv;
        Softmax softmax = work(pieces[piece], head);
        if (same_queries(pieces, piece) || same_queries(pieces, piece + 1)) {
          parts[head][piece] = std::move(softmax);
        } else {
          finish(pieces[piece], head, &softmax, 1);
        }
      }
    });
    for (size_t first = 0, last; first < pieces.size(); first = last) {
      for (last = first + 1; same_queries(pieces, last);) {
        ++last;
      }
      for (int64_t head = 0; last - first > 1 && head < H_kv; ++head) {
        finish(pieces[first], head, &parts[head][first], static_cast<int64_t>(last - first));
      }
    }
  }
};

}  // namespace

mx::array paged_attention(const mx::array& q, const mx::array& keys, const mx::array& values, const PageArrays& pages,
                          float scale) {
  check_pool(q, "q", keys, values, pages);
  const mx::Stream stream = mx::default_stream(mx::Device::cpu);
  return mx::array(q.shape(), q.dtype(), std::make_shared<PagedAttention>(stream, scale),
                   {q, keys, values, pages.table, pages.bounds, pages.lengths});
}

void PagedAttention::eval_cpu(const Arrays& inputs, Arrays& outputs) {
  run_on_stream(stream(), inputs, outputs, [scale = scale_](const Arrays& in, Arrays& out) {
    if (out[0].size() == 0) {
      return;
    }
    if (out[0].dtype() == mx::float32) {
      Attention<float>(in, out[0], scale).run();
    } else {
      Attention<Bf16>(in, out[0], scale).run();
    }
  });
}

}  // namespace tiny_llm
