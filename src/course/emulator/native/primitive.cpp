#include "primitive.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>
#include <stdexcept>

#include "mlx/allocator.h"
#include "mlx/backend/cpu/encoder.h"

namespace msl {

namespace {

std::mutex records_mutex;
std::deque<Record> records;

void keep(Record record) {
  constexpr size_t kMostRecords = 100'000;  // whoever asks for records takes them long before
  const std::lock_guard lock(records_mutex);
  if (records.size() == kMostRecords) records.pop_front();
  records.push_back(std::move(record));
}

size_t scalar_size(mx::Dtype dtype) { return dtype == mx::complex64 ? sizeof(float) : mx::size_of(dtype); }

// A view of an array as it lies: all elements that its shape and strides reach.
Buffer view(const mx::array& a, Role role, const std::string& name) {
  int64_t first = 0, last = 0;
  for (int axis = 0; axis < static_cast<int>(a.ndim()); ++axis) {
    const int64_t reach = (a.shape(axis) - 1) * a.strides(axis);
    (reach < 0 ? first : last) += reach;
  }
  const auto item = static_cast<int64_t>(a.itemsize());
  const size_t size = a.size() == 0 ? 0 : static_cast<size_t>((last - first + 1) * item);
  return {role, name, const_cast<char*>(a.data<char>()), first * item, size, scalar_size(a.dtype())};
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// What a kernel asks about an array, in the types that MLX gives its kernels.
std::string facts(const mx::array& a, Source source) {
  if (source == Source::shape) return bytes_of(std::vector<int32_t>(a.shape().begin(), a.shape().end()));
  if (source == Source::strides) return bytes_of(std::vector<int64_t>(a.strides().begin(), a.strides().end()));
  return bytes_of(std::vector<int32_t>{static_cast<int32_t>(a.ndim())});
}

class KernelLaunch : public mx::Primitive {
 public:
  KernelLaunch(mx::Stream stream, Call call)
      : mx::Primitive(stream), call_(std::make_shared<const Call>(std::move(call))) {}

  const char* name() const override { return "EmulatedMetalKernel"; }

  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error("the kernel emulator runs on a CPU stream: pass stream=mx.cpu");
  }

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    for (mx::array& output : outputs) output.set_data(mx::allocator::malloc(output.nbytes()));
    auto& encoder = mx::cpu::get_command_encoder(stream());
    for (const mx::array& input : inputs) encoder.set_input_array(input);
    for (mx::array& output : outputs) encoder.set_output_array(output);
    std::vector<mx::array> weak;  // an array that held itself would never be freed
    for (const mx::array& output : outputs) weak.push_back(mx::array::unsafe_weak_copy(output));
    encoder.dispatch([call = call_, inputs, weak = std::move(weak)]() mutable { run_call(*call, inputs, weak); });
  }

 private:
  static void run_call(const Call& call, const std::vector<mx::array>& inputs, const std::vector<mx::array>& outputs) {
    const Options& options = call.dispatch.options;
    std::vector<std::string> constants(call.bindings.size());
    std::vector<Buffer> buffers;
    for (size_t i = 0; i < call.bindings.size(); ++i)
      buffers.push_back(buffer(call, call.bindings[i], inputs, outputs, constants[i]));
    Record record = run(call.dispatch, buffers);
    const std::string error = options.raise_on_fatal && record.stopped ? message(record) : "";
    if (options.tag != 0) keep(std::move(record));
    if (!error.empty()) throw std::runtime_error(error);
  }

  static Buffer buffer(const Call& call, const Binding& binding, const std::vector<mx::array>& inputs,
                       const std::vector<mx::array>& outputs, std::string& constant) {
    const auto index = static_cast<size_t>(binding.index);
    switch (binding.source) {
      case Source::input:
        return view(inputs[index], Role::input, binding.name);
      case Source::constant:
        return view(inputs[index], Role::constant, binding.name);
      case Source::output: {
        Buffer output = view(outputs[index], Role::output, binding.name);
        output.defined = call.init_value.has_value();
        output.floating = mx::issubdtype(outputs[index].dtype(), mx::inexact);
        if (output.defined) {
          const mx::array& initial = inputs[first_initial(call, inputs) + index];
          std::memcpy(output.data, initial.data<char>(), output.size);
        }
        return output;
      }
      default:
        constant = binding.source == Source::bytes ? binding.bytes : facts(inputs[index], binding.source);
        return {Role::constant, binding.name, constant.data(), 0, constant.size(), 1};
    }
  }

  // Outputs that start from a value are filled by MLX: one more input for each.
  static size_t first_initial(const Call& call, const std::vector<mx::array>& inputs) {
    const auto is_output = [](const Binding& binding) { return binding.source == Source::output; };
    return inputs.size() - static_cast<size_t>(std::count_if(call.bindings.begin(), call.bindings.end(), is_output));
  }

  static std::string message(const Record& record) {
    std::string text = "kernel " + record.kernel + " was stopped";
    for (const Finding& finding : record.findings) {
      if (!is_fatal(finding.kind)) continue;
      text += std::string(": ") + kind_name(finding.kind);
      if (finding.site.line) text += " at line " + std::to_string(finding.site.line);
      if (finding.note[0]) text += std::string(" (") + finding.note + ")";
      break;
    }
    return text;
  }

  std::shared_ptr<const Call> call_;
};

}  // namespace

std::vector<mx::array> launch(Call call, const std::vector<mx::array>& inputs, const std::vector<mx::Shape>& shapes,
                              const std::vector<mx::Dtype>& dtypes, mx::StreamOrDevice stream) {
  const mx::Stream on = mx::to_stream(stream);
  std::vector<mx::array> all = inputs;
  if (call.init_value)
    for (size_t i = 0; i < shapes.size(); ++i)
      all.push_back(mx::contiguous(mx::full(shapes[i], *call.init_value, dtypes[i], on), false, on));
  return mx::array::make_arrays(shapes, dtypes, std::make_shared<KernelLaunch>(on, std::move(call)), all);
}

std::vector<Record> take_records(std::optional<int64_t> tag) {
  const std::lock_guard lock(records_mutex);
  std::vector<Record> taken;
  std::deque<Record> rest;
  for (Record& record : records) {
    if (!tag || record.tag == *tag) {
      taken.push_back(std::move(record));
    } else {
      rest.push_back(std::move(record));
    }
  }
  records.swap(rest);
  return taken;
}

}  // namespace msl
