#include "attention.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "flash_attention.h"
#include "threads.h"

namespace tiny_llm {

namespace {

using Arrays = std::vector<mx::array>;

// Query tokens that are answered together, each with all heads of its key/value head.
constexpr int64_t kTokens = 64;
// Fewer keys are not worth a part of their own.
constexpr int64_t kLeastKeys = 128;

// Keys or values (B, H_kv, S, D) where they lie, if the numbers of a row are neighbours there; otherwise in a copy.
template <class T>
struct HeadRows {
  explicit HeadRows(const mx::array& a)
      : data(static_cast<const T*>(a.data<void>())),
        batch_stride(a.strides(0)),
        head_stride(a.strides(1)),
        row_stride(a.strides(2)) {
    const int64_t D = a.shape(3), stride = a.strides(3);
    if (stride == 1 || D == 1) {
      return;
    }
    copy.reserve(a.size());
    for (int64_t i = 0; i < static_cast<int64_t>(a.size()); ++i) {
      const int64_t row = i / D, head = row / a.shape(2), batch = head / a.shape(1);
      copy.push_back(data[batch * batch_stride + head % a.shape(1) * head_stride + row % a.shape(2) * row_stride +
                          i % D * stride]);
    }
    data = copy.data();
    row_stride = D;
    head_stride = a.shape(2) * D;
    batch_stride = a.shape(1) * head_stride;
  }

  const T* head(int64_t batch, int64_t head) const {
    return data + batch * batch_stride + head * head_stride;
  }

  const T* data;
  int64_t batch_stride, head_stride, row_stride;
  std::vector<T> copy;
};

template <class T>
struct Attention {
  Attention(const mx::array& q, const mx::array& k, const mx::array& v, mx::array& out, float scale)
      : q(q), out(out), keys_of(k), values_of(v), scale(scale), H_kv(k.shape(1)), S(k.shape(2)) {}

  const mx::array& q;
  mx::array& out;
  HeadRows<T> keys_of, values_of;
  float scale;
  int64_t B = q.shape(0), H = q.shape(1), L = q.shape(2), D = q.shape(3);
  int64_t H_kv, S;
  int64_t G = H / H_kv;
  int64_t tiles = (L + kTokens - 1) / kTokens;

  // One tile is the queries of up to kTokens tokens and all heads that share a key/value head.
  int64_t count() const {
    return B * H_kv * tiles;
  }

  int64_t batch(int64_t tile) const {
    return tile / tiles / H_kv;
  }

  int64_t kv_head(int64_t tile) const {
    return tile / tiles % H_kv;
  }

  // Tiles with many visible keys come first, so that no thread begins a long one last.
  int64_t first_token(int64_t tile) const {
    return (tiles - 1 - tile % tiles) * kTokens;
  }

  int64_t tokens(int64_t tile) const {
    return std::min(kTokens, L - first_token(tile));
  }

  // Keys that at least one query of the tile sees.
  int64_t keys(int64_t tile) const {
    return std::max<int64_t>(0, S - L + first_token(tile) + tokens(tile));
  }

  Queries<T> queries(int64_t tile) const {
    Queries<T> rows(G * tokens(tile), D);
    for (int64_t r = 0; r < rows.rows; ++r) {
      const int64_t head = kv_head(tile) * G + r % G, token = first_token(tile) + r / G;
      const T* from = static_cast<const T*>(q.data<void>()) + batch(tile) * q.strides(0) + head * q.strides(1) +
                      token * q.strides(2);
      for (int64_t d = 0; d < D; ++d) {
        rows.row(r)[d] = from[d * q.strides(3)];
      }
      rows.visible[r] = std::max<int64_t>(0, S - L + token + 1);
    }
    return rows;
  }

  KeysValues<T> keys_values(int64_t tile) const {
    return {keys_of.head(batch(tile), kv_head(tile)), values_of.head(batch(tile), kv_head(tile)), keys_of.row_stride,
            values_of.row_stride};
  }

  // Joins what is known of the tile's rows from several parts of the keys, and writes the results.
  void finish(int64_t tile, const Softmax* parts, int64_t count) const {
    std::vector<float> row(D);
    for (int64_t r = 0; r < G * tokens(tile); ++r) {
      join(parts, count, r, D, row.data());
      const int64_t head = kv_head(tile) * G + r % G, token = first_token(tile) + r / G;
      write(out, ((batch(tile) * H + head) * L + token) * D, row.data(), D);
    }
  }

  // Where there are fewer tiles than threads, as in decoding with few key/value heads, the keys of a tile are cut into
  // parts, so that all threads have work.
  int64_t parts() const {
    const int64_t wanted = (2 * ThreadPool::shared().threads() + count() - 1) / count();
    return std::clamp<int64_t>(S / kLeastKeys, 1, wanted);
  }

  void run() const {
    const int64_t n = parts();
    if (n == 1) {
      parallel_for(count(), 1, [&](int64_t begin, int64_t end) {
        for (int64_t tile = begin; tile < end; ++tile) {
          const Queries<T> rows = queries(tile);
          Softmax softmax(rows.rows, D);
          flash_attention_rows(rows, keys_values(tile), 0, keys(tile), scale, softmax);
          finish(tile, &softmax, 1);
        }
      });
      return;
    }
    std::vector<Softmax> softmaxes;
    for (int64_t i = 0; i < count() * n; ++i) {
      softmaxes.emplace_back(G * tokens(i / n), D);
    }
    parallel_for(count() * n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t tile = i / n, share = padded((keys(tile) + n - 1) / n, kKeys), first = i % n * share;
        flash_attention_rows(queries(tile), keys_values(tile), std::min(first, keys(tile)),
                             std::min(first + share, keys(tile)), scale, softmaxes[i]);
      }
    });
    for (int64_t tile = 0; tile < count(); ++tile) {
      finish(tile, &softmaxes[tile * n], n);
    }
  }
};

}  // namespace

mx::array flash_attention(const mx::array& q, const mx::array& k, const mx::array& v, float scale) {
  check_activations(q, "q");
  if (q.ndim() != 4 || k.ndim() != 4 || k.shape() != v.shape() || q.shape(0) != k.shape(0) ||
      q.shape(3) != k.shape(3) || k.shape(1) == 0 || q.shape(1) % k.shape(1)) {
    throw std::invalid_argument("q " + to_string(q.shape()) + ", k " + to_string(k.shape()) + ", v " +
                                to_string(v.shape()) +
                                ": expected (B, H, L, D) and twice (B, H_kv, S, D), H a multiple of H_kv");
  }
  if (k.dtype() != q.dtype() || v.dtype() != q.dtype()) {
    throw std::invalid_argument("q, k and v must have one dtype");
  }
  const mx::Stream stream = mx::default_stream(mx::Device::cpu);
  return mx::array(q.shape(), q.dtype(), std::make_shared<FlashAttention>(stream, scale), {q, k, v});
}

void FlashAttention::eval_cpu(const Arrays& inputs, Arrays& outputs) {
  run_on_stream(stream(), inputs, outputs, [scale = scale_](const Arrays& in, Arrays& out) {
    if (out[0].size() == 0) {
      return;
    }
    if (out[0].dtype() == mx::float32) {
      Attention<float>(in[0], in[1], in[2], out[0], scale).run();
    } else {
      Attention<Bf16>(in[0], in[1], in[2], out[0], scale).run();
    }
  });
}

}  // namespace tiny_llm
