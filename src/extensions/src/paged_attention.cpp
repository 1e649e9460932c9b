#include "paged_attention.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "flash_attention.h"
#include "ragged.h"
#include "threads.h"

namespace tiny_llm {

namespace {

using Arrays = std::vector<mx::array>;

// A pool and whose rows stand where in it, once the numbers are known. Throws std::runtime_error where they do not fit.
struct PagedBatch {
  PagedBatch(const mx::array& keys, const mx::array& values, const Arrays& in, size_t first, int64_t T)
      : table(integers(in[first])),
        bounds(integers(in[first + 1])),
        lengths(integers(in[first + 2])),
        most_pages(in[first].shape(1)),
        pages(keys.shape(0)),
        page_size(keys.shape(2)),
        strides(keys.strides().begin(), keys.strides().end()) {
    if (keys.strides() != values.strides() || strides[3] != 1) {
      throw std::runtime_error("keys and values of a pool must lie alike, the numbers of a row side by side");
    }
    check(T);
  }

  int64_t requests() const {
    return static_cast<int64_t>(lengths.size());
  }

  Pages of(int64_t request) const {
    return {table.data() + request * most_pages, page_size, strides[0], strides[2]};
  }

  static std::vector<int32_t> integers(const mx::array& a) {
    std::vector<int32_t> all(a.size());
    const int64_t columns = a.shape(-1);
    for (size_t i = 0; i < all.size(); ++i) {
      const int64_t row = a.ndim() > 1 ? static_cast<int64_t>(i) / columns * a.strides(0) : 0;
      all[i] = a.data<int32_t>()[row + static_cast<int64_t>(i) % columns * a.strides(-1)];
    }
    return all;
  }

  void check(int64_t T) const {
    if (bounds.front() != 0 || bounds.back() != T || !std::is_sorted(bounds.begin(), bounds.end())) {
      throw std::runtime_error("bounds must rise from 0 to the " + std::to_string(T) + " rows of the batch");
    }
    for (int64_t i = 0; i < requests(); ++i) {
      const int64_t rows = bounds[i + 1] - bounds[i], used = (lengths[i] + page_size - 1) / page_size;
      if (lengths[i] < rows || used > most_pages) {
        throw std::runtime_error("request " + std::to_string(i) + " of the batch: " + std::to_string(lengths[i]) +
                                 " keys, but " + std::to_string(rows) + " rows and " + std::to_string(most_pages) +
                                 " pages of " + std::to_string(page_size));
      }
      for (int64_t p = 0; p < (rows ? used : 0); ++p) {
        if (of(i).table[p] < 0 || of(i).table[p] >= pages) {
          throw std::runtime_error("request " + std::to_string(i) + " of the batch: page " +
                                   std::to_string(of(i).table[p]) + " is outside 0 .. " + std::to_string(pages - 1));
        }
      }
    }
  }

  std::vector<int32_t> table, bounds, lengths;
  int64_t most_pages, pages, page_size;
  std::vector<int64_t> strides;
};

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
    const int64_t threads = ThreadPool::shared().threads();
    const std::vector<Piece> pieces =
        ragged_pieces({batch.bounds.data(), batch.lengths.data(), batch.requests()}, H_kv, threads);
    const auto shared = [&](size_t i) {  // whether pieces i - 1 and i answer the same queries
      return i > 0 && i < pieces.size() && pieces[i].query == pieces[i - 1].query;
    };
    // Long pieces come first, so that no thread begins one last.
    std::vector<size_t> order(pieces.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const auto cost = [&](size_t i) { return (pieces[i].last_key - pieces[i].first_key) * pieces[i].queries; };
      return cost(a) > cost(b);
    });
    std::vector<std::vector<Softmax>> parts(H_kv, std::vector<Softmax>(pieces.size(), Softmax(0, D)));
    parallel_for(static_cast<int64_t>(pieces.size()) * H_kv, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const size_t piece = order[i / H_kv];
        const int64_t head = i % H_kv;
        Softmax softmax = work(pieces[piece], head);
        if (shared(piece) || shared(piece + 1)) {
          parts[head][piece] = std::move(softmax);
        } else {
          finish(pieces[piece], head, &softmax, 1);
        }
      }
    });
    for (size_t first = 0, last; first < pieces.size(); first = last) {
      for (last = first + 1; shared(last);) {
        ++last;
      }
      for (int64_t head = 0; last - first > 1 && head < H_kv; ++head) {
        finish(pieces[first], head, &parts[head][first], static_cast<int64_t>(last - first));
      }
    }
  }
};

template <class T>
void write_rows(const mx::array& rows, const PagedBatch& batch, void* pool) {
  const int64_t heads = rows.shape(1), D = rows.shape(3);
  const T* from = static_cast<const T*>(rows.data<void>());
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < batch.requests(); ++i) {
    const int64_t first = batch.bounds[i], count = batch.bounds[i + 1] - first;
    offsets.resize(count);
    page_rows(batch.of(i), batch.lengths[i] - count, count, offsets.data());
    for (int64_t t = 0; t < count; ++t) {
      for (int64_t h = 0; h < heads; ++h) {
        T* to = static_cast<T*>(pool) + offsets[t] + h * batch.strides[1];
        const T* row = from + (first + t) * rows.strides(0) + h * rows.strides(1);
        for (int64_t d = 0; d < D; ++d) {
          to[d] = row[d * rows.strides(3)];
        }
      }
    }
  }
}

void check_pool(const mx::array& rows, const char* what, const mx::array& keys, const mx::array& values,
                const PageArrays& pages) {
  check_activations(rows, what);
  if (rows.ndim() != 4 || rows.shape(2) != 1 || keys.ndim() != 4 || keys.shape() != values.shape() ||
      keys.size() == 0 || rows.shape(3) != keys.shape(3) || rows.shape(1) % keys.shape(1)) {
    throw std::invalid_argument(std::string(what) + " " + to_string(rows.shape()) + ", keys " + to_string(keys.shape()) +
                                ", values " + to_string(values.shape()) +
                                ": expected (T, H, 1, D) and twice (pages, H_kv, page_size, D), H a multiple of H_kv");
  }
  if (keys.dtype() != rows.dtype() || values.dtype() != rows.dtype()) {
    throw std::invalid_argument(std::string(what) + ", keys and values must have one dtype");
  }
  const mx::array &table = pages.table, &bounds = pages.bounds, &lengths = pages.lengths;
  if (table.ndim() != 2 || lengths.shape() != mx::Shape{table.shape(0)} ||
      bounds.shape() != mx::Shape{table.shape(0) + 1} || table.dtype() != mx::int32 || bounds.dtype() != mx::int32 ||
      lengths.dtype() != mx::int32) {
    throw std::invalid_argument("table " + to_string(table.shape()) + ", bounds " + to_string(bounds.shape()) +
                                ", lengths " + to_string(lengths.shape()) +
                                ": expected (n, max pages), (n + 1,) and (n,), all int32");
  }
}

}  // namespace

mx::array paged_attention(const mx::array& q, const mx::array& keys, const mx::array& values, const PageArrays& pages,
                          float scale) {
  check_pool(q, "q", keys, values, pages);
  const mx::Stream stream = mx::default_stream(mx::Device::cpu);
  return mx::array(q.shape(), q.dtype(), std::make_shared<PagedAttention>(stream, scale),
                   {q, keys, values, pages.table, pages.bounds, pages.lengths});
}

std::vector<mx::array> paged_write(const mx::array& k, const mx::array& v, const mx::array& keys,
                                   const mx::array& values, const PageArrays& pages) {
  check_pool(k, "k", keys, values, pages);
  if (k.shape() != v.shape() || k.dtype() != v.dtype() || k.shape(1) != keys.shape(1)) {
    throw std::invalid_argument("k " + to_string(k.shape()) + ", v " + to_string(v.shape()) +
                                ": expected (T, H_kv, 1, D) twice, H_kv " + std::to_string(keys.shape(1)));
  }
  const mx::Stream stream = mx::default_stream(mx::Device::cpu);
  return mx::array::make_arrays({keys.shape(), values.shape()}, {keys.dtype(), values.dtype()},
                                std::make_shared<PagedWrite>(stream),
                                {k, v, keys, values, pages.table, pages.bounds, pages.lengths});
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

void PagedWrite::eval_cpu(const Arrays& inputs, Arrays& outputs) {
  outputs[0].copy_shared_buffer(inputs[2]);
  outputs[1].copy_shared_buffer(inputs[3]);
  Arrays none;  // nothing to make room for
  run_on_stream(stream(), inputs, none, [](const Arrays& in, Arrays&) {
    const PagedBatch batch(in[2], in[3], in, 4, in[0].shape(0));
    for (int i = 0; i < 2; ++i) {
      void* pool = const_cast<void*>(in[2 + i].data<void>());
      if (in[i].dtype() == mx::float32) {
        write_rows<float>(in[i], batch, pool);
      } else {
        write_rows<Bf16>(in[i], batch, pool);
      }
    }
  });
}

}  // namespace tiny_llm
