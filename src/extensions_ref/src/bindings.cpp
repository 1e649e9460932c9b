// The Python module: which functions there are, and how their arguments are called.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "ceilings.h"
#include "quantized_matmul.h"
#include "threads.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace tiny_llm;

// How often parallel_for called its body for each index, run `depth` times inside itself: for the tests of Day 4.
static std::vector<int> parallel_visits(int64_t n, int64_t grain, int depth) {
  std::vector<std::atomic<int>> visits(n);
  const std::function<void(int)> run = [&](int level) {
    parallel_for(n, grain, [&](int64_t begin, int64_t end) {
      if (begin < 0 || end > n || begin >= end || end - begin > grain) {
        throw std::out_of_range("piece [" + std::to_string(begin) + ", " + std::to_string(end) + ") of n " +
                                std::to_string(n) + " with grain " + std::to_string(grain));
      }
      for (int64_t i = begin; i < end; ++i) {
        visits[i].fetch_add(1);
      }
      if (level > 1 && begin == 0) {
        run(level - 1);
      }
    });
  };
  run(depth);
  return {visits.begin(), visits.end()};
}

// Throws std::runtime_error("index BAD") inside the piece that holds index `bad`.
static void parallel_failure(int64_t n, int64_t grain, int64_t bad) {
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    if (begin <= bad && bad < end) {
      throw std::runtime_error("index " + std::to_string(bad));
    }
  });
}

NB_MODULE(_ext, m) {
  m.doc() = "C++ kernels as operations of MLX";
  nb::module_::import_("mlx.core");  // registers the type of mx.array

  m.def("identity", [](const mx::array& x) { return x; }, "x"_a,
        "x itself: shows that MLX's arrays cross into this library");
  m.def("instruction_set", &instruction_set, "The instructions that the kernels were built for");
  m.def("threads", [] { return tiny_llm::ThreadPool::shared().threads(); }, "Threads of the pool, the caller's included");
  m.def("read_bandwidth", &read_bandwidth, "megabytes"_a, "threads"_a, nb::call_guard<nb::gil_scoped_release>(),
        "Bytes per second that so many threads read from memory");
  m.def("peak_flops", &peak_flops, "threads"_a, "seconds"_a, nb::call_guard<nb::gil_scoped_release>(),
        "Float32 operations per second of vector multiply-adds");
  m.def("parallel_visits", &parallel_visits, "n"_a, "grain"_a, "depth"_a = 1,
        nb::call_guard<nb::gil_scoped_release>(), "How often parallel_for visits each of n indices");
  m.def("parallel_failure", &parallel_failure, "n"_a, "grain"_a, "bad"_a, nb::call_guard<nb::gil_scoped_release>(),
        "Runs parallel_for with a body that throws at index `bad`");

  m.def(
      "quantized_matmul",
      [](const mx::array& x, const mx::array& words, const mx::array& scales, const mx::array& biases, int group_size,
         const std::string& kernel) { return quantized_matmul(x, {words, scales, biases}, group_size, kernel); },
      "x"_a, "words"_a, "scales"_a, "biases"_a, "group_size"_a, "kernel"_a = "auto",
      "x W^T with packed 4-bit W: (..., I) x (O, I) -> (..., O)");
}
