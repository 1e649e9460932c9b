#include "fused_qkv.h"

#include <algorithm>
#include <stdexcept>

#include "elementwise.h"
#include "steps.h"
#include "threads.h"

namespace tiny_llm {

namespace {

using Arrays = std::vector<mx::array>;

// What happens to each head of one of the three results after its product.
struct Heads {
  int64_t first;  // of its features among those of all three
  int64_t count;
  std::vector<float> norm;  // empty for values, which are neither normalised nor rotated
  mx::array* out;
};

// Normalises, rotates and stores the heads of all tokens, whose products stand in y: (tokens, features).
void finish_heads(float* y, int64_t tokens, int64_t features, int64_t L, int64_t D, const Rows& cos, const Rows& sin,
                  const QkvOptions& options, const std::vector<Heads>& results) {
  parallel_for(tokens, 8, [&](int64_t begin, int64_t end) {
    std::vector<float> c(D / 2), s(D / 2);
    for (int64_t m = begin; m < end; ++m) {
      const int64_t position = options.offsets[options.offsets.size() == 1 ? 0 : m / L] + m % L;
      cos.read(position, c.data());
      sin.read(position, s.data());
      for (const Heads& heads : results) {
        for (int64_t h = 0; h < heads.count; ++h) {
          float* head = y + m * features + heads.first + h * D;
          if (!heads.norm.empty()) {
            rms_norm(head, heads.norm.data(), options.head_eps, D, head);
            rotate(head, c.data(), s.data(), D, options.traditional);
          }
          write(*heads.out, ((m / L * heads.count + h) * L + m % L) * D, head, D);
        }
      }
    }
  });
}

}  // namespace

std::vector<mx::array> fused_qkv(const mx::array& x, const mx::array& norm, const PackedArrays& q,
                                 const PackedArrays& k, const PackedArrays& v, const mx::array& q_norm,
                                 const mx::array& k_norm, const mx::array& cos, const mx::array& sin,
                                 const QkvOptions& options) {
  check_stream(x);
  const int B = x.shape(0), L = x.shape(1), D = static_cast<int>(q_norm.size());
  check_norm(norm, x.shape(2), "norm");
  check_norm(q_norm, D, "q_norm");
  check_norm(k_norm, D, "k_norm");
  check_packed(q, x.shape(2), options.group_size, "q");
  check_packed(k, x.shape(2), options.group_size, "k");
  check_packed(v, x.shape(2), options.group_size, "v");
  const int q_rows = q.words.shape(0), k_rows = k.words.shape(0), v_rows = v.words.shape(0);
  if (D == 0 || D % 2 || q_rows % D || k_rows % D || k_rows != v_rows) {
    throw std::invalid_argument("q, k and v have " + std::to_string(q_rows) + ", " + std::to_string(k_rows) + " and " +
                                std::to_string(v_rows) + " rows, which are no heads of " + std::to_string(D) +
                                " features (an even number), or no equally many keys and values");
  }
  check_positions(cos, sin, D, B, L, options.offsets);
  Arrays inputs = {x, norm, q_norm, k_norm, cos, sin};
  append_packed(inputs, q);
  append_packed(inputs, k);
  append_packed(inputs, v);
  const mx::Shape kv = {B, k_rows / D, L, D};
  return mx::array::make_arrays({{B, q_rows / D, L, D}, kv, kv}, {x.dtype(), x.dtype(), x.dtype()},
                                std::make_shared<FusedQkv>(mx::default_stream(mx::Device::cpu), options), inputs);
}

void FusedQkv::eval_cpu(const Arrays& inputs, Arrays& outputs) {
  run_on_stream(stream(), inputs, outputs, [options = options_](const Arrays& in, Arrays& out) {
    const Rows x(in[0]), cos(in[4]), sin(in[5]);
    const std::vector<float> norm = floats(in[1]);
    const PackedWeights q = packed_weights(in, 6, options.group_size), k = packed_weights(in, 9, options.group_size);
    const PackedWeights v = packed_weights(in, 12, options.group_size);
    const int64_t tokens = x.count(), features = q.rows + k.rows + v.rows;
    const Scratch y = scratch(tokens * features);
    const Product products[] = {
        {q, y.get(), features}, {k, y.get() + q.rows, features}, {v, y.get() + q.rows + k.rows, features}};
    multiply(tokens, dtype_of(in[0]), normalised(x, norm, options.eps), products);
    const int64_t D = out[0].shape(3), L = out[0].shape(2);
    const std::vector<Heads> results = {{0, q.rows / D, floats(in[2]), &out[0]},
                                        {q.rows, k.rows / D, floats(in[3]), &out[1]},
                                        {q.rows + k.rows, v.rows / D, {}, &out[2]}};
    finish_heads(y.get(), tokens, features, L, D, cos, sin, options, results);
  });
}

}  // namespace tiny_llm
