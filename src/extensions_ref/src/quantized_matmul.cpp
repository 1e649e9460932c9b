#include "quantized_matmul.h"

#include <stdexcept>

#include "mlx/backend/cpu/encoder.h"
#include "threads.h"

namespace tiny_llm {

namespace {

Kernel kernel_named(const std::string& name) {
  if (name == "auto") {
    return Kernel::automatic;
  }
  if (name == "scalar") {
    return Kernel::scalar;
  }
  if (name == "vector") {
    return Kernel::vector;
  }
  if (name == "blocked") {
    return Kernel::blocked;
  }
  throw std::invalid_argument("kernel '" + name + "' must be auto, scalar, vector or blocked");
}

// Computes every row of x, which is evaluated by now, and writes `out`, which has its memory.
void compute(const mx::array& x, const PackedWeights& w, mx::array& out, Kernel kernel) {
  const Rows rows(x);
  const int64_t tokens = rows.count();
  const ReadRow read = [&rows](int64_t token, float* row) { rows.read(token, row); };
  if (out.dtype() == mx::float32) {
    const Product product = {w, out.data<float>(), w.rows};
    multiply(tokens, dtype_of(x), read, {&product, 1}, kernel);
    return;
  }
  const auto y = std::make_unique_for_overwrite<float[]>(tokens * w.rows);
  const Product product = {w, y.get(), w.rows};
  multiply(tokens, dtype_of(x), read, {&product, 1}, kernel);
  write(out, 0, y.get(), tokens * w.rows);
}

}  // namespace

mx::array quantized_matmul(const mx::array& x, const PackedArrays& w, int group_size, const std::string& kernel) {
  check_activations(x, "x");
  check_packed(w, x.shape(-1), group_size, "w");
  mx::Shape shape = x.shape();
  shape.back() = w.words.shape(0);
  std::vector<mx::array> inputs = {x};
  append_packed(inputs, w);
  const mx::Stream stream = mx::default_stream(mx::Device::cpu);
  return mx::array(shape, x.dtype(), std::make_shared<QuantizedMatmul>(stream, group_size, kernel_named(kernel)),
                   std::move(inputs));
}

void QuantizedMatmul::eval_cpu(const std::vector<mx::array>& inputs, mx::array& out) {
  // begin task: QuantizedMatmul.eval_cpu
  out.set_data(mx::allocator::malloc(out.nbytes()));
  auto& encoder = mx::cpu::get_command_encoder(stream());
  for (const mx::array& input : inputs) {
    encoder.set_input_array(input);
  }
  encoder.set_output_array(out);
  // MLX keeps the memory of inputs and outputs until the stream has passed this point, so weak copies do. What they
  // point to is read inside only: out here the inputs may not have been computed yet.
  std::vector<mx::array> weak_inputs;
  for (const mx::array& input : inputs) {
    weak_inputs.push_back(mx::array::unsafe_weak_copy(input));
  }
  encoder.dispatch([inputs = std::move(weak_inputs), out = mx::array::unsafe_weak_copy(out), group_size = group_size_,
                    kernel = kernel_]() mutable {
    compute(inputs[0], packed_weights(inputs, 1, group_size), out, kernel);
  });
  // end task: QuantizedMatmul.eval_cpu
}

void QuantizedMatmul::eval_gpu(const std::vector<mx::array>&, mx::array&) {
  throw std::runtime_error("QuantizedMatmul runs on the CPU only");
}

}  // namespace tiny_llm
