#include "arrays.h"

#include <sstream>
#include <stdexcept>

#include "huge_pages.h"
#include "mlx/utils.h"
#include "simd.h"

namespace tiny_llm {

namespace {

std::string type_name(const mx::array& a) {
  std::ostringstream text;
  text << a.dtype();
  return text.str();
}

template <class T>
void read_row(const T* from, int64_t stride, int64_t n, float* to) {
  if (stride == 1) {
    int64_t i = 0;
    for (; i + simd::kLanes <= n; i += simd::kLanes) {
      simd::store(to + i, simd::load(from + i));
    }
    for (; i < n; ++i) {
      to[i] = to_float(from[i]);
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    to[i] = to_float(from[i * stride]);
  }
}

}  // namespace

DType dtype_of(const mx::array& a) {
  if (a.dtype() == mx::float32) {
    return DType::float32;
  }
  if (a.dtype() == mx::float16) {
    return DType::float16;
  }
  if (a.dtype() == mx::bfloat16) {
    return DType::bfloat16;
  }
  throw std::invalid_argument("dtype " + type_name(a) + " is not supported: use float32, float16 or bfloat16");
}

void check_packed(const PackedArrays& w, int64_t columns, int group_size, const std::string& what) {
  if (group_size != 32 && group_size != 64 && group_size != 128) {
    throw std::invalid_argument(what + ": group_size " + std::to_string(group_size) + " must be 32, 64 or 128");
  }
  if (w.words.dtype() != mx::uint32 || w.words.ndim() != 2) {
    throw std::invalid_argument(what + ": words " + to_string(w.words.shape()) + " " + type_name(w.words) +
                                " must be (rows, columns / 8) uint32");
  }
  if (w.words.shape(1) * int64_t{8} != columns) {
    throw std::invalid_argument(what + ": words " + to_string(w.words.shape()) + " hold rows of " +
                                std::to_string(w.words.shape(1) * int64_t{8}) + " 4-bit numbers, x has " +
                                std::to_string(columns) + " columns");
  }
  if (columns == 0 || columns % group_size) {
    throw std::invalid_argument(what + ": " + std::to_string(columns) + " columns are not a multiple of group_size " +
                                std::to_string(group_size));
  }
  const mx::Shape expected = {w.words.shape(0), static_cast<int>(columns / group_size)};
  for (const mx::array* values : {&w.scales, &w.biases}) {
    if (values->shape() != expected) {
      throw std::invalid_argument(what + ": scales " + to_string(w.scales.shape()) + " and biases " +
                                  to_string(w.biases.shape()) + " must be " + to_string(expected) +
                                  ", one number per group of " + std::to_string(group_size));
    }
  }
  if (w.scales.dtype() != w.biases.dtype()) {
    throw std::invalid_argument(what + ": scales " + type_name(w.scales) + " and biases " + type_name(w.biases) +
                                " must have one dtype");
  }
  dtype_of(w.scales);
}

void check_activations(const mx::array& x, const std::string& what) {
  if (x.dtype() != mx::float32 && x.dtype() != mx::bfloat16) {
    throw std::invalid_argument(what + ": dtype " + type_name(x) + " is not supported: use float32 or bfloat16");
  }
  if (x.ndim() == 0) {
    throw std::invalid_argument(what + ": a number without axes has no columns");
  }
}

mx::array row_major(const mx::array& a) {
  // The layout is known as soon as an array is scheduled; only one that is not must be asked later, by an operation.
  if (a.status() != mx::array::Status::unscheduled && a.flags().row_contiguous) {
    return a;
  }
  return mx::contiguous(a, false, mx::default_stream(mx::Device::cpu));
}

void append_packed(std::vector<mx::array>& inputs, const PackedArrays& w) {
  inputs.push_back(row_major(w.words));
  inputs.push_back(row_major(w.scales));
  inputs.push_back(row_major(w.biases));
}

PackedWeights packed_weights(const std::vector<mx::array>& inputs, size_t first, int group_size) {
  const mx::array &words = inputs[first], &scales = inputs[first + 1], &biases = inputs[first + 2];
  const int64_t columns = words.shape(1) * int64_t{8};
  prefer_huge_pages(words.data<void>(), words.nbytes());
  return {words.data<uint32_t>(),
          {scales.data<void>(), dtype_of(scales)},
          {biases.data<void>(), dtype_of(biases)},
          words.shape(0),
          columns,
          group_size,
          columns / group_size};
}

std::string to_string(const mx::Shape& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i ? ", " : "") + std::to_string(shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

Rows::Rows(const mx::array& a)
    : data_(a.data<void>()),
      type_(dtype_of(a)),
      count_(a.shape(-1) ? static_cast<int64_t>(a.size()) / a.shape(-1) : 0),
      shape_(a.shape().begin(), a.shape().end()),
      strides_(a.strides().begin(), a.strides().end()) {}

void Rows::read(int64_t index, float* to) const {
  int64_t offset = 0;
  for (size_t axis = shape_.size() - 1; axis-- > 0;) {
    offset += index % shape_[axis] * strides_[axis];
    index /= shape_[axis];
  }
  switch (type_) {
    case DType::float32:
      read_row(static_cast<const float*>(data_) + offset, strides_.back(), shape_.back(), to);
      break;
    case DType::float16:
      read_row(static_cast<const Half*>(data_) + offset, strides_.back(), shape_.back(), to);
      break;
    case DType::bfloat16:
      read_row(static_cast<const Bf16*>(data_) + offset, strides_.back(), shape_.back(), to);
      break;
  }
}

void write(mx::array& out, int64_t offset, const float* from, int64_t n) {
  if (out.dtype() == mx::float32) {
    std::memcpy(out.data<float>() + offset, from, n * sizeof(float));
    return;
  }
  Bf16* to = static_cast<Bf16*>(out.data<void>()) + offset;
  int64_t i = 0;
  for (; i + simd::kLanes <= n; i += simd::kLanes) {
    simd::store(to + i, simd::load(from + i));
  }
  for (; i < n; ++i) {
    to[i] = to_bf16(from[i]);
  }
}

std::vector<float> floats(const mx::array& a) {
  const Rows rows(a);
  std::vector<float> values(a.size());
  for (int64_t i = 0; i < rows.count(); ++i) {
    rows.read(i, values.data() + i * a.shape(-1));
  }
  return values;
}

}  // namespace tiny_llm
