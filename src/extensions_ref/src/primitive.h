// How our operations get onto a stream of MLX.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "mlx/backend/cpu/encoder.h"
#include "mlx/mlx.h"
#include "mlx/primitives.h"

namespace tiny_llm {

namespace mx = mlx::core;

// An operation that runs on the CPU only.
class CpuPrimitive : public mx::Primitive {
 public:
  using Primitive::Primitive;

  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error(std::string(name()) + " runs on the CPU only");
  }
};

// Gives every output its memory, and queues compute(inputs, outputs) on the stream.
//
// MLX calls `eval_cpu` in the order of the graph. At that time the inputs have memory, but the operations that fill it
// may still be waiting on the stream: their values, and even `data()`, may be looked at inside `compute` only.
// compute: called once, on the stream's thread, with arrays that share the memory of inputs and outputs. What it
// throws reaches the caller of mx.eval as RuntimeError.
template <class Compute>
void run_on_stream(mx::Stream stream, const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                   Compute compute) {
  // begin task: run_on_stream
  auto& encoder = mx::cpu::get_command_encoder(stream);
  // MLX itself keeps the memory of inputs and outputs until the stream has passed this operation. A strong copy would
  // count as one more user of that memory, and keep MLX from reusing it in place.
  std::vector<mx::array> later_inputs, later_outputs;
  for (const mx::array& input : inputs) {
    encoder.set_input_array(input);
    later_inputs.push_back(mx::array::unsafe_weak_copy(input));
  }
  for (mx::array& output : outputs) {
    output.set_data(mx::allocator::malloc(output.nbytes()));
    encoder.set_output_array(output);
    later_outputs.push_back(mx::array::unsafe_weak_copy(output));
  }
  encoder.dispatch([compute = std::move(compute), inputs = std::move(later_inputs),
                    outputs = std::move(later_outputs)]() mutable { compute(inputs, outputs); });
  // end task: run_on_stream
}

}  // namespace tiny_llm
