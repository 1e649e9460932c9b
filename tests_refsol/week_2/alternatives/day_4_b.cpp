// Day 4 in a third style: rows are unpacked to float and multiplied in double, one thread is started for each share of
// the pieces, and the primitive copies x before it multiplies.

// file: extensions/src/quantized_matmul.cpp
// begin task: QuantizedMatmul.eval_cpu
mx::array& y = outputs[0];
y.set_data(mx::allocator::malloc(y.nbytes()));
auto& encoder = mx::cpu::get_command_encoder(stream());
for (const mx::array& input : inputs) {
  encoder.set_input_array(input);
}
encoder.set_output_array(y);
encoder.dispatch([in = inputs, out = mx::array::unsafe_weak_copy(y), group = group_size_, kernel = kernel_]() mutable {
  const Rows rows(in[0]);
  const PackedWeights w = packed_weights(in, 1, group);
  std::vector<float> x(rows.count() * w.columns);
  for (int64_t m = 0; m < rows.count(); ++m) {
    rows.read(m, &x[m * w.columns]);
  }
  const auto read = [&](int64_t m, float* row) { std::memcpy(row, &x[m * w.columns], w.columns * sizeof(float)); };
  multiply_into(rows.count(), dtype_of(in[0]), read, w, out, kernel);
});
// end task: QuantizedMatmul.eval_cpu

// file: extensions/src/qmv.cpp
// begin task: qmv_scalar
int64_t row = begin;
while (row < end) {
  double sum = 0;
  const uint32_t* word = w.row(row);
  for (int64_t k = 0; k < w.columns; k += 8, ++word) {
    uint32_t left = *word;
    for (int64_t i = k; i < k + 8; ++i, left >>= 4) {
      const int64_t group = row * w.groups + i / w.group;
      sum += double(x[i]) * (double(w.scales.at(group)) * (left & 15) + double(w.biases.at(group)));
    }
  }
  y[row++] = float(sum);
}
// end task: qmv_scalar

// begin task: qmv_rows
using N = Nibbles<Element>;
constexpr int64_t kLanes = simd::kLanes;
auto dense = std::make_unique<double[]>(w.columns);
for (int64_t row = begin; row < end; ++row) {
  for (int64_t k = 0; k < w.columns; ++k) {
    const int64_t group = row * w.groups + k / w.group;
    dense[k] = double(w.scales.at(group)) * (w.row(row)[k / 8] >> k % 8 * 4 & 15) + double(w.biases.at(group));
  }
  for (int64_t m = 0; m < x.tokens(); ++m) {
    double sum = 0;
    for (int64_t k = 0; k < w.columns; ++k) {
      const int64_t word = k / 8, step = k % 8 % N::kSteps, part = k % 8 / N::kSteps;
      const int64_t at = (word / kLanes * N::kSteps + step) * kLanes * N::kSpan + word % kLanes * N::kSpan + part;
      sum += dense[k] * double(to_float(x.data(m)[at]));
    }
    y[m * stride + row] = float(sum);
  }
}
// end task: qmv_rows

// file: extensions/src/qmm.cpp
// begin task: qmm_rows
// One group of columns after the other, and inside it a small matrix product of all rows and tokens.
using N = Nibbles<Element>;
const int64_t rows = end - begin, tokens = x.tokens();
auto sums = std::make_unique<double[]>(rows * tokens);
std::fill_n(sums.get(), rows * tokens, 0.0);
for (int64_t k = 0; k < w.columns; ++k) {
  const int64_t step = k / 8 * N::kSteps + k % 8 % N::kSteps, part = k % 8 / N::kSteps;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t group = (begin + i) * w.groups + k / w.group;
    const double weight = double(w.scales.at(group)) * (w.row(begin + i)[k / 8] >> 4 * (k % 8) & 15) +
                          double(w.biases.at(group));
    for (int64_t m = 0; m < tokens; ++m) {
      const Element* tile = x.data(m / x.tile());
      sums[i * tokens + m] += weight * double(to_float(tile[(step * x.tile() + m % x.tile()) * N::kSpan + part]));
    }
  }
}
for (int64_t m = 0; m < tokens; ++m) {
  for (int64_t i = 0; i < rows; ++i) {
    y[m * stride + begin + i] = float(sums[i * tokens + m]);
  }
}
// end task: qmm_rows

// file: extensions/src/threads.cpp
// begin task: parallel_for
const int64_t pieces = n > 0 ? (n - 1) / grain + 1 : 0;
const int64_t shares = std::min<int64_t>(pieces, ThreadPool::shared().threads());
std::exception_ptr failures[kMostThreads];
const auto share = [&](int64_t first) {
  try {
    for (int64_t piece = first; piece < pieces; piece += shares) {
      const int64_t begin = piece * grain;
      body(begin, piece + 1 == pieces ? n : begin + grain);
    }
  } catch (...) {
    failures[first] = std::current_exception();
  }
};
{
  std::jthread threads[kMostThreads];  // joined at the end of the block
  for (int64_t i = 1; i < shares; ++i) {
    threads[i] = std::jthread(share, i);
  }
  if (shares > 0) {
    share(0);
  }
}
for (const std::exception_ptr& failure : failures) {
  if (failure) {
    std::rethrow_exception(failure);
  }
}
// end task: parallel_for

// file: extensions/src/fused.cpp
// begin task: FusedMlp.eval_cpu
run_on_stream(stream(), inputs, outputs, [group = group_size_, eps = eps_](const Arrays& in, Arrays& out) {
  const Rows rows(in[0]);
  const PackedWeights w[] = {packed_weights(in, 2, group), packed_weights(in, 5, group), packed_weights(in, 8, group)};
  const int64_t E = w[2].rows, I = w[0].rows, tokens = rows.count();
  const DType type = dtype_of(in[0]);
  const std::vector<float> weight = floats(in[1]);
  std::vector<float> x(tokens * E), normed(tokens * E), both(tokens * 2 * I), y(tokens * E);
  for (int64_t m = 0; m < tokens; ++m) {
    rows.read(m, &x[m * E]);
    rms_norm(&x[m * E], weight.data(), eps, E, &normed[m * E]);
  }
  // gate and up side by side: (tokens, 2 I)
  const Product products[] = {{w[0], both.data(), 2 * I}, {w[1], both.data() + I, 2 * I}};
  multiply(tokens, type, [&](int64_t m, float* row) { std::copy_n(&normed[m * E], E, row); }, products);
  for (int64_t m = 0; m < tokens; ++m) {
    swiglu(&both[m * 2 * I], &both[m * 2 * I + I], I, &both[m * 2 * I]);
  }
  const Product down[] = {{w[2], y.data(), E}};
  multiply(tokens, type, [&](int64_t m, float* row) { std::copy_n(&both[m * 2 * I], I, row); }, down);
  for (int64_t i = 0; i < tokens * E; ++i) {
    y[i] += x[i];
  }
  write(out[0], 0, y.data(), tokens * E);
});
// end task: FusedMlp.eval_cpu
