// A kernel launch as an MLX primitive: lazy like any other operation, and run on the CPU thread of its stream.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch.h"
#include "mlx/mlx.h"
#include "mlx/primitives.h"

namespace msl {

namespace mx = mlx::core;

// What [[buffer(i)]] is: an array, or what a kernel asks about one.
enum class Source { input, constant, shape, strides, ndim, bytes, output };

struct Binding {
  Source source;
  int index;          // of the input or output
  std::string name;
  std::string bytes;  // for Source::bytes
};

struct Call {
  Dispatch dispatch;
  std::vector<Binding> bindings;
  std::optional<float> init_value;
};

std::vector<mx::array> launch(Call call, const std::vector<mx::array>& inputs, const std::vector<mx::Shape>& shapes,
                              const std::vector<mx::Dtype>& dtypes, mx::StreamOrDevice stream);

// The records of finished launches, in the order in which they ran; of one tag, or all. They are kept no longer.
std::vector<Record> take_records(std::optional<int64_t> tag);

}  // namespace msl
