#include "paged_write.h"

#include <memory>
#include <stdexcept>

namespace tiny_llm {

namespace {

using Arrays = std::vector<mx::array>;

template <class T>
void write_rows(const mx::array& rows, const PagedBatch& batch, void* pool) {
  const int64_t heads = rows.shape(1), D = rows.shape(3);
  const T* from = static_cast<const T*>(rows.data<void>());
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < batch.requests(); ++i) {
    const int64_t first = batch.bounds[i], count = batch.bounds[i + 1] - first;
    offsets.resize(count);
    page_rows(batch.of(i), batch.lengths[i] - count, count, offsets.data());
    for (int64_t t = 0; t < count; ++t) {
      for (int64_t h = 0; h < heads; ++h) {
        T* to = static_cast<T*>(pool) + offsets[t] + h * batch.strides[1];
        const T* row = from + (first + t) * rows.strides(0) + h * rows.strides(1);
        for (int64_t d = 0; d < D; ++d) {
          to[d] = row[d * rows.strides(3)];
        }
      }
    }
  }
}

}  // namespace

std::vector<mx::array> paged_write(const mx::array& k, const mx::array& v, const mx::array& keys,
                                   const mx::array& values, const PageArrays& pages) {
  check_pool(k, "k", keys, values, pages);
  if (k.shape() != v.shape() || k.dtype() != v.dtype() || k.shape(1) != keys.shape(1)) {
    throw std::invalid_argument("k " + to_string(k.shape()) + ", v " + to_string(v.shape()) +
                                ": expected (T, H_kv, 1, D) twice, H_kv " + std::to_string(keys.shape(1)));
  }
  const mx::Stream stream = mx::default_stream(mx::Device::cpu);
  return mx::array::make_arrays({keys.shape(), values.shape()}, {keys.dtype(), values.dtype()},
                                std::make_shared<PagedWrite>(stream),
                                {k, v, keys, values, pages.table, pages.bounds, pages.lengths});
}

void PagedWrite::eval_cpu(const Arrays& inputs, Arrays& outputs) {
  outputs[0].copy_shared_buffer(inputs[2]);
  outputs[1].copy_shared_buffer(inputs[3]);
  Arrays none;  // nothing to make room for
  run_on_stream(stream(), inputs, none, [](const Arrays& in, Arrays&) {
    const PagedBatch batch(in[2], in[3], in, 4, in[0].shape(0));
    for (int i = 0; i < 2; ++i) {
      void* pool = const_cast<void*>(in[2 + i].data<void>());
      if (in[i].dtype() == mx::float32) {
        write_rows<float>(in[i], batch, pool);
      } else {
        write_rows<Bf16>(in[i], batch, pool);
      }
    }
  });
}

}  // namespace tiny_llm
