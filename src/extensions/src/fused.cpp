// This file is yours to edit. Read book/src/week2-04-cpu-kernels.md.

#include "fused.h"

#include <stdexcept>

#include "elementwise.h"
#include "steps.h"

namespace tiny_llm {

namespace {

using Arrays = std::vector<mx::array>;

mx::Stream cpu_stream() {
  return mx::default_stream(mx::Device::cpu);
}

}  // namespace

mx::array fused_mlp(const mx::array& x, const mx::array& norm, const PackedArrays& gate, const PackedArrays& up,
                    const PackedArrays& down, int group_size, float eps) {
  check_stream(x);
  check_norm(norm, x.shape(-1), "norm");
  check_packed(gate, x.shape(-1), group_size, "gate");
  check_packed(up, x.shape(-1), group_size, "up");
  check_packed(down, gate.words.shape(0), group_size, "down");
  if (up.words.shape(0) != gate.words.shape(0) || down.words.shape(0) != x.shape(-1)) {
    throw std::invalid_argument("gate, up and down have " + std::to_string(gate.words.shape(0)) + ", " +
                                std::to_string(up.words.shape(0)) + " and " + std::to_string(down.words.shape(0)) +
                                " rows: expected (I, E), (I, E) and (E, I) for x " + to_string(x.shape()));
  }
  Arrays inputs = {x, norm};
  append_packed(inputs, gate);
  append_packed(inputs, up);
  append_packed(inputs, down);
  return mx::array(x.shape(), x.dtype(), std::make_shared<FusedMlp>(cpu_stream(), group_size, eps), inputs);
}

void FusedMlp::eval_cpu(const Arrays& inputs, Arrays& outputs) {
  // begin task: FusedMlp.eval_cpu
  throw std::runtime_error("Week 2 Day 4 Task 5: FusedMlp.eval_cpu - see book/src/week2-04-cpu-kernels.md#task-5");
  // end task: FusedMlp.eval_cpu
}

mx::array fused_output(const mx::array& x, const mx::array& attended, const PackedArrays& w, int group_size) {
  check_stream(x);
  if (attended.ndim() != 4 || attended.shape(0) != x.shape(0) || attended.shape(2) != x.shape(1) ||
      attended.dtype() != x.dtype()) {
    throw std::invalid_argument("attended " + to_string(attended.shape()) + " must be (B, H, L, D) in the dtype of x " +
                                to_string(x.shape()));
  }
  check_packed(w, int64_t{attended.shape(1)} * attended.shape(3), group_size, "w");
  if (w.words.shape(0) != x.shape(-1)) {
    throw std::invalid_argument("w has " + std::to_string(w.words.shape(0)) + " rows, x " + to_string(x.shape()) +
                                " needs " + std::to_string(x.shape(-1)));
  }
  Arrays inputs = {x, attended};
  append_packed(inputs, w);
  return mx::array(x.shape(), x.dtype(), std::make_shared<FusedOutput>(cpu_stream(), group_size), inputs);
}

void FusedOutput::eval_cpu(const Arrays& inputs, Arrays& outputs) {
  run_on_stream(stream(), inputs, outputs, [group_size = group_size_](const Arrays& in, Arrays& out) {
    const Rows x(in[0]), heads(in[1]);
    const PackedWeights w = packed_weights(in, 2, group_size);
    const int64_t H = in[1].shape(1), L = in[1].shape(2), D = in[1].shape(3);
    const Scratch y = scratch(x.count() * w.rows);
    const ReadRow joined = [&](int64_t token, float* row) {
      for (int64_t h = 0; h < H; ++h) {
        heads.read((token / L * H + h) * L + token % L, row + h * D);
      }
    };
    const Product product[] = {{w, y.get(), w.rows}};
    multiply(x.count(), dtype_of(in[0]), joined, product);
    write_sum(x, y.get(), w.rows, out[0]);
  });
}

mx::array fused_head(const mx::array& x, const mx::array& norm, const PackedArrays& w, int group_size, float eps) {
  check_stream(x);
  check_norm(norm, x.shape(-1), "norm");
  check_packed(w, x.shape(-1), group_size, "w");
  Arrays inputs = {x, norm};
  append_packed(inputs, w);
  return mx::array({x.shape(0), x.shape(1), w.words.shape(0)}, x.dtype(),
                   std::make_shared<FusedHead>(cpu_stream(), group_size, eps), inputs);
}

void FusedHead::eval_cpu(const Arrays& inputs, Arrays& outputs) {
  run_on_stream(stream(), inputs, outputs, [group_size = group_size_, eps = eps_](const Arrays& in, Arrays& out) {
    const Rows x(in[0]);
    const std::vector<float> norm = floats(in[1]);
    multiply_into(x.count(), dtype_of(in[0]), normalised(x, norm, eps), packed_weights(in, 2, group_size), out[0]);
  });
}

}  // namespace tiny_llm
