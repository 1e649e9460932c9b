// Day 4 in another style: plain loops and no vectors, weights factored by groups, a counter behind a lock, and arrays
// that the dispatched function holds itself.

// file: extensions/src/primitive.h
// begin task: run_on_stream
struct Call {
  Compute compute;
  std::vector<mx::array> inputs, outputs;
};
mx::cpu::CommandEncoder& queue = mx::cpu::get_command_encoder(stream);
for (size_t i = 0; i < outputs.size(); ++i) {
  outputs[i].set_data(mx::allocator::malloc(outputs[i].nbytes()));
  queue.set_output_array(outputs[i]);
}
for (size_t i = 0; i < inputs.size(); ++i) {
  queue.set_input_array(inputs[i]);
}
auto call = std::make_shared<Call>(Call{std::move(compute), inputs, {}});
for (const mx::array& output : outputs) {
  call->outputs.push_back(mx::array::unsafe_weak_copy(output));
}
queue.dispatch([call]() { call->compute(call->inputs, call->outputs); });
// end task: run_on_stream

// file: extensions/src/quantized_matmul.cpp
// begin task: QuantizedMatmul.eval_cpu
const int group_size = group_size_;
const Kernel kernel = kernel_;
run_on_stream(stream(), inputs, outputs, [=](const auto& in, auto& out) {
  const Rows rows(in[0]);
  const PackedWeights w = packed_weights(in, 1, group_size);
  std::vector<float> y(rows.count() * w.rows);
  const Product products[1] = {{w, y.data(), w.rows}};
  multiply(
      rows.count(), dtype_of(in[0]), [&](int64_t m, float* to) { rows.read(m, to); }, products, kernel);
  write(out[0], 0, y.data(), static_cast<int64_t>(y.size()));
});
// end task: QuantizedMatmul.eval_cpu

// file: extensions/src/qmv.cpp
// begin task: qmv_scalar
for (int64_t row = begin; row != end; ++row) {
  y[row] = 0;
  for (int64_t g = 0; g < w.groups; ++g) {
    float weighted = 0, plain = 0;
    for (int64_t k = g * w.group; k < (g + 1) * w.group; ++k) {
      const uint32_t word = w.words[(row * w.columns + k) / 8];
      weighted += float(word >> (k % 8 * 4) & 0xf) * x[k];
      plain += x[k];
    }
    y[row] += w.scales.at(row * w.groups + g) * weighted + w.biases.at(row * w.groups + g) * plain;
  }
}
// end task: qmv_scalar

// begin task: qmv_rows
using N = Nibbles<Element>;
constexpr int64_t kLanes = simd::kLanes;
for (int64_t m = 0; m < x.tokens(); ++m) {
  for (int64_t row = begin; row < end; ++row) {
    float sum = 0;
    for (int64_t g = 0; g < w.groups; ++g) {
      float dot = 0;
      for (int64_t i = g * w.group / 8; i < (g + 1) * w.group / 8; ++i) {
        const Element* at = x.data(m) + i / kLanes * 8 * kLanes + i % kLanes * N::kSpan;
        for (int k = 0; k < 8; ++k) {
          const float q = static_cast<float>(w.row(row)[i] >> (4 * k) & 15);
          dot += q * to_float(at[k % N::kSteps * kLanes * N::kSpan + k / N::kSteps]);
        }
      }
      sum += w.scales.at(row * w.groups + g) * dot + w.biases.at(row * w.groups + g) * x.sums(m)[g];
    }
    y[m * stride + row] = sum;
  }
}
// end task: qmv_rows

// file: extensions/src/qmm.cpp
// begin task: qmm_rows
using N = Nibbles<Element>;
std::unique_ptr<float[]> dense(new float[w.columns]);
for (int64_t row = begin; row < end; ++row) {
  for (int64_t k = 0; k < w.columns; ++k) {
    const int64_t group = row * w.groups + k / w.group;
    dense[k] = w.scales.at(group) * static_cast<float>(w.row(row)[k / 8] >> (4 * (k % 8)) & 15) + w.biases.at(group);
  }
  for (int64_t m = 0; m < x.tokens(); ++m) {
    const Element* tile = x.data(m / x.tile());
    float sum = 0;
    for (int64_t k = 0; k < w.columns; ++k) {
      const int64_t step = k / 8 * N::kSteps + k % 8 % N::kSteps;
      sum += dense[k] * to_float(tile[(step * x.tile() + m % x.tile()) * N::kSpan + k % 8 / N::kSteps]);
    }
    y[m * stride + row] = sum;
  }
}
// end task: qmm_rows

// file: extensions/src/threads.cpp
// begin task: parallel_for
std::mutex mutex;
int64_t done = 0;
std::exception_ptr failure;
const std::function<void()> work = [&]() {
  while (true) {
    int64_t begin;
    {
      std::lock_guard<std::mutex> hold(mutex);
      begin = done;
      if (begin >= n || failure) {
        return;
      }
      done = n - begin > grain ? begin + grain : n;
    }
    try {
      body(begin, n - begin > grain ? begin + grain : n);
    } catch (...) {
      std::lock_guard<std::mutex> hold(mutex);
      if (!failure) {
        failure = std::current_exception();
      }
    }
  }
};
ThreadPool::shared().run(work);
if (failure) {
  std::rethrow_exception(failure);
}
// end task: parallel_for

// file: extensions/src/fused.cpp
// begin task: FusedMlp.eval_cpu
run_on_stream(stream(), inputs, outputs, [group = group_size_, eps = eps_](const Arrays& in, Arrays& out) {
  const Rows rows(in[0]);
  const PackedWeights gate = packed_weights(in, 2, group), up = packed_weights(in, 5, group);
  const PackedWeights down = packed_weights(in, 8, group);
  const std::vector<float> weight = floats(in[1]);
  std::vector<float> x(down.rows), normed(down.rows), g(gate.rows), u(gate.rows), y(down.rows);
  const auto times = [&](const std::vector<float>& v, const PackedWeights& w, std::vector<float>& to) {
    const Product one[] = {{w, to.data(), w.rows}};
    multiply(1, dtype_of(in[0]), [&v](int64_t, float* row) { std::copy(v.begin(), v.end(), row); }, one);
  };
  for (int64_t token = 0; token < rows.count(); ++token) {
    rows.read(token, x.data());
    float squares = 0;
    for (float v : x) {
      squares += v * v;
    }
    for (int64_t i = 0; i < down.rows; ++i) {
      normed[i] = x[i] * weight[i] / std::sqrt(squares / static_cast<float>(down.rows) + eps);
    }
    times(normed, gate, g);
    times(normed, up, u);
    for (int64_t i = 0; i < gate.rows; ++i) {
      g[i] = g[i] / (1 + std::exp(-g[i])) * u[i];
    }
    times(g, down, y);
    for (int64_t i = 0; i < down.rows; ++i) {
      y[i] += x[i];
    }
    write(out[0], token * down.rows, y.data(), down.rows);
  }
});
// end task: FusedMlp.eval_cpu
