// The Python module: which functions there are, and how their arguments are called.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <vector>

#include "attention.h"
#include "between.h"
#include "ceilings.h"
#include "fused.h"
#include "fused_qkv.h"
#include "paged_attention.h"
#include "paged_write.h"
#include "probes.h"
#include "quantized_matmul.h"
#include "threads.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace tiny_llm;

NB_MODULE(_ext, m) {
  m.doc() = "C++ kernels as operations of MLX";
  nb::module_::import_("mlx.core");  // registers the type of mx.array

  m.def("identity", [](const mx::array& x) { return x; }, "x"_a,
        "x itself: shows that MLX's arrays cross into this library");
  m.def("instruction_set", &instruction_set, "The instructions that the kernels were built for");
  m.def("threads", [] { return tiny_llm::ThreadPool::shared().threads(); },
        "Threads of the pool, the caller's included");
  m.def("read_bandwidth", &read_bandwidth, "megabytes"_a, "threads"_a, nb::call_guard<nb::gil_scoped_release>(),
        "Bytes per second that so many threads read from memory");
  m.def("peak_flops", &peak_flops, "threads"_a, "seconds"_a, nb::call_guard<nb::gil_scoped_release>(),
        "Float32 operations per second of vector multiply-adds");

  using Packed = std::tuple<mx::array, mx::array, mx::array>;
  const auto packed = [](const Packed& w) {
    return PackedArrays{std::get<0>(w), std::get<1>(w), std::get<2>(w)};
  };
  m.def(
      "quantized_matmul",
      [packed](const mx::array& x, const Packed& w, int group_size, const std::string& kernel) {
        return quantized_matmul(x, packed(w), group_size, kernel);
      },
      "x"_a, "w"_a, "group_size"_a, "kernel"_a = "auto",
      "x W^T with packed 4-bit W = (words, scales, biases): (..., I) x (O, I) -> (..., O)");
  m.def(
      "fused_qkv",
      [packed](const mx::array& x, const mx::array& norm, const Packed& q, const Packed& k, const Packed& v,
               const mx::array& q_norm, const mx::array& k_norm, const mx::array& cos, const mx::array& sin,
               int group_size, float eps, float head_eps, const std::vector<int>& offsets, bool traditional) {
        return fused_qkv(x, norm, packed(q), packed(k), packed(v), q_norm, k_norm, cos, sin,
                         {group_size, eps, head_eps, offsets, traditional});
      },
      "x"_a, "norm"_a, "q"_a, "k"_a, "v"_a, "q_norm"_a, "k_norm"_a, "cos"_a, "sin"_a, "group_size"_a, "eps"_a,
      "head_eps"_a, "offsets"_a, "traditional"_a,
      "Norm, projections, head norms and rope: (B, L, E) -> q (B, H, L, D), k and v (B, H_kv, L, D)");
  m.def(
      "fused_output",
      [packed](const mx::array& x, const mx::array& attended, const Packed& w, int group_size) {
        return fused_output(x, attended, packed(w), group_size);
      },
      "x"_a, "attended"_a, "w"_a, "group_size"_a, "x + W (joined heads): (B, L, E), (B, H, L, D) -> (B, L, E)");
  m.def(
      "fused_mlp",
      [packed](const mx::array& x, const mx::array& norm, const Packed& gate, const Packed& up, const Packed& down,
               int group_size, float eps) {
        return fused_mlp(x, norm, packed(gate), packed(up), packed(down), group_size, eps);
      },
      "x"_a, "norm"_a, "gate"_a, "up"_a, "down"_a, "group_size"_a, "eps"_a,
      "x + W_down (silu(W_gate n) * W_up n), n = normalised x: (B, L, E) -> (B, L, E)");
  m.def(
      "fused_head",
      [packed](const mx::array& x, const mx::array& norm, const Packed& w, int group_size, float eps) {
        return fused_head(x, norm, packed(w), group_size, eps);
      },
      "x"_a, "norm"_a, "w"_a, "group_size"_a, "eps"_a, "W times normalised x: (B, L, E) -> (B, L, V)");
  m.def("normalise", &normalise, "x"_a, "weight"_a, "eps"_a, "RMSNorm of the last axis");
  m.def("gated", &gated, "gate"_a, "up"_a, "silu(gate) * up");
  m.def(
      "rotated_heads",
      [](const mx::array& y, const mx::array& norm, const mx::array& cos, const mx::array& sin, float eps,
         const std::vector<int>& offsets, bool traditional) {
        return rotated_heads(y, norm, cos, sin, {eps, offsets, traditional});
      },
      "y"_a, "norm"_a, "cos"_a, "sin"_a, "eps"_a, "offsets"_a, "traditional"_a,
      "Head norms and rope: (B, L, H * D) -> (B, H, L, D)");
  m.def("flash_attention", &flash_attention, "q"_a, "k"_a, "v"_a, "scale"_a,
        "Causal attention: (B, H, L, D), twice (B, H_kv, S, D) -> (B, H, L, D)");
  m.def(
      "paged_attention",
      [](const mx::array& q, const mx::array& keys, const mx::array& values, const mx::array& table,
         const mx::array& bounds, const mx::array& lengths, float scale) {
        return paged_attention(q, keys, values, {table, bounds, lengths}, scale);
      },
      "q"_a, "keys"_a, "values"_a, "table"_a, "bounds"_a, "lengths"_a, "scale"_a,
      "Causal attention of each request on its own pages: (T, H, 1, D) -> (T, H, 1, D)");
  m.def(
      "paged_write",
      [](const mx::array& k, const mx::array& v, const mx::array& keys, const mx::array& values,
         const mx::array& table, const mx::array& bounds, const mx::array& lengths) {
        return paged_write(k, v, keys, values, {table, bounds, lengths});
      },
      "k"_a, "v"_a, "keys"_a, "values"_a, "table"_a, "bounds"_a, "lengths"_a,
      "Writes new rows (T, H_kv, 1, D) into the pool's memory; returns keys and values");

  m.def("parallel_visits", &parallel_visits, "n"_a, "grain"_a, "depth"_a = 1,
        nb::call_guard<nb::gil_scoped_release>(), "How often parallel_for visits each of n indices");
  m.def("parallel_failure", &parallel_failure, "n"_a, "grain"_a, "bad"_a, nb::call_guard<nb::gil_scoped_release>(),
        "Runs parallel_for with a body that throws at index `bad`");
  m.def("parallel_meeting", &parallel_meeting, "n"_a, "seconds"_a, nb::call_guard<nb::gil_scoped_release>(),
        "How many threads one parallel_for over n pieces brings together, waiting for them up to `seconds`");
  m.def("parallel_failure_elsewhere", &parallel_failure_elsewhere, "seconds"_a,
        nb::call_guard<nb::gil_scoped_release>(), "Runs parallel_for with a body that throws on other threads");
  m.def("page_offsets", &page_offsets, "table"_a, "page_size"_a, "page_stride"_a, "row_stride"_a, "first"_a, "count"_a,
        "Where page_rows finds positions first .. first + count - 1");
  m.def("batch_pieces", &batch_pieces, "bounds"_a, "lengths"_a, "kv_heads"_a, "threads"_a,
        "What ragged_pieces makes of a batch: request, query, queries, visible, first key, last key of each piece");
  m.def(
      "written_rows",
      [packed](const mx::array& x, const Packed& w, int group_size, const std::string& kernel, int64_t begin,
               int64_t end) { return written_rows(x, packed(w), group_size, kernel, begin, end); },
      "x"_a, "w"_a, "group_size"_a, "kernel"_a, "begin"_a, "end"_a,
      "What a kernel writes of the product when it is asked for some rows; the rest is NaN");
}
