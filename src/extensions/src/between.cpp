#include "between.h"

#include <algorithm>
#include <stdexcept>

#include "elementwise.h"
#include "steps.h"
#include "threads.h"

namespace tiny_llm {

namespace {

using Arrays = std::vector<mx::array>;

// Fewer numbers than this are not worth waking a thread for.
constexpr int64_t kGrain = 16384;

int64_t rows_per_piece(int64_t n) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(n, 1));
}

mx::Stream cpu_stream() {
  return mx::default_stream(mx::Device::cpu);
}

}  // namespace

mx::array normalise(const mx::array& x, const mx::array& weight, float eps) {
  check_activations(x, "x");
  if (x.ndim() == 0) {
    throw std::invalid_argument("x has no axis to normalise");
  }
  check_norm(weight, x.shape(-1), "weight");
  return mx::array(x.shape(), x.dtype(), std::make_shared<Normalise>(cpu_stream(), eps), {x, weight});
}

void Normalise::eval_cpu(const Arrays& inputs, Arrays& outputs) {
  run_on_stream(stream(), inputs, outputs, [eps = eps_](const Arrays& in, Arrays& out) {
    const Rows x(in[0]);
    const std::vector<float> weight = floats(in[1]);
    const int64_t n = weight.size();
    parallel_for(x.count(), rows_per_piece(n), [&](int64_t begin, int64_t end) {
      std::vector<float> row(n);
      for (int64_t i = begin; i < end; ++i) {
        x.read(i, row.data());
        rms_norm(row.data(), weight.data(), eps, n, row.data());
        write(out[0], i * n, row.data(), n);
      }
    });
  });
}

mx::array gated(const mx::array& gate, const mx::array& up) {
  check_activations(gate, "gate");
  if (gate.shape() != up.shape() || gate.dtype() != up.dtype() || gate.ndim() == 0) {
    throw std::invalid_argument("gate " + to_string(gate.shape()) + " and up " + to_string(up.shape()) +
                                " must have one shape and dtype");
  }
  return mx::array(gate.shape(), gate.dtype(), std::make_shared<Gated>(cpu_stream()), {gate, up});
}

void Gated::eval_cpu(const Arrays& inputs, Arrays& outputs) {
  run_on_stream(stream(), inputs, outputs, [](const Arrays& in, Arrays& out) {
    const Rows gates(in[0]), ups(in[1]);
    const int64_t n = in[0].shape(-1);
    parallel_for(gates.count(), rows_per_piece(n), [&](int64_t begin, int64_t end) {
      std::vector<float> gate(n), up(n);
      for (int64_t i = begin; i < end; ++i) {
        gates.read(i, gate.data());
        ups.read(i, up.data());
        swiglu(gate.data(), up.data(), n, gate.data());
        write(out[0], i * n, gate.data(), n);
      }
    });
  });
}

mx::array rotated_heads(const mx::array& y, const mx::array& norm, const mx::array& cos, const mx::array& sin,
                        const HeadOptions& options) {
  check_stream(y);
  const int B = y.shape(0), L = y.shape(1), D = static_cast<int>(norm.size());
  check_norm(norm, D, "norm");
  if (D == 0 || D % 2 || y.shape(2) % D) {
    throw std::invalid_argument("y " + to_string(y.shape()) + " does not consist of heads of " + std::to_string(D) +
                                " features (an even number)");
  }
  check_positions(cos, sin, D, B, L, options.offsets);
  return mx::array({B, y.shape(2) / D, L, D}, y.dtype(), std::make_shared<RotatedHeads>(cpu_stream(), options),
                   {y, norm, cos, sin});
}

void RotatedHeads::eval_cpu(const Arrays& inputs, Arrays& outputs) {
  run_on_stream(stream(), inputs, outputs, [options = options_](const Arrays& in, Arrays& out) {
    const Rows y(in[0]), cos(in[2]), sin(in[3]);
    const std::vector<float> norm = floats(in[1]);
    const int64_t H = out[0].shape(1), L = out[0].shape(2), D = out[0].shape(3);
    parallel_for(y.count(), rows_per_piece(H * D), [&](int64_t begin, int64_t end) {
      std::vector<float> row(H * D), c(D / 2), s(D / 2);
      for (int64_t m = begin; m < end; ++m) {
        const int64_t position = options.offsets[options.offsets.size() == 1 ? 0 : m / L] + m % L;
        y.read(m, row.data());
        cos.read(position, c.data());
        sin.read(position, s.data());
        for (int64_t h = 0; h < H; ++h) {
          float* head = row.data() + h * D;
          rms_norm(head, norm.data(), options.eps, D, head);
          rotate(head, c.data(), s.data(), D, options.traditional);
          write(out[0], ((m / L * H + h) * L + m % L) * D, head, D);
        }
      }
    });
  });
}

}  // namespace tiny_llm
