#include "quantized_matmul.h"

#include <stdexcept>

#include "steps.h"

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

void QuantizedMatmul::eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) {
  // begin task: QuantizedMatmul.eval_cpu
  const auto compute = [group_size = group_size_, kernel = kernel_](const std::vector<mx::array>& in,
                                                                    std::vector<mx::array>& out) {
    const Rows x(in[0]);
    const ReadRow read = [&x](int64_t token, float* row) { x.read(token, row); };
    multiply_into(x.count(), dtype_of(in[0]), read, packed_weights(in, 1, group_size), out[0], kernel);
  };
  run_on_stream(stream(), inputs, outputs, compute);
  // end task: QuantizedMatmul.eval_cpu
}

}  // namespace tiny_llm
