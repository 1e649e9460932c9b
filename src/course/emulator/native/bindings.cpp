// The Python module `_emulator`. runtime.py gives it its types and its checks.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <stdexcept>
#include <tuple>

#include "primitive.h"

namespace nb = nanobind;
using namespace msl;

namespace {

using Size = std::tuple<uint32_t, uint32_t, uint32_t>;
using PythonBinding = std::tuple<std::string, int, std::string, nb::bytes>;

constexpr std::array kArgumentKinds = {
    "buffer",
    "threadgroup",
    "thread_position_in_grid",
    "thread_position_in_threadgroup",
    "threadgroup_position_in_grid",
    "thread_index_in_threadgroup",
    "thread_index_in_simdgroup",
    "simdgroup_index_in_threadgroup",
    "threads_per_threadgroup",
    "dispatch_threads_per_threadgroup",
    "threadgroups_per_grid",
    "threads_per_grid",
    "simdgroups_per_threadgroup",
    "dispatch_simdgroups_per_threadgroup",
    "threads_per_simdgroup",
    "grid_origin",
    "thread_index_in_quadgroup",
    "quadgroup_index_in_threadgroup",
    "quadgroups_per_threadgroup",
    "unknown",
};
static_assert(kArgumentKinds.size() == kUnknown + 1);

constexpr std::array kSources = {"input", "constant", "shape", "strides", "ndim", "bytes", "output"};

Uint3 to_uint3(const Size& size) { return {std::get<0>(size), std::get<1>(size), std::get<2>(size)}; }

Binding to_binding(const PythonBinding& binding) {
  const auto& [source, index, name, bytes] = binding;
  for (size_t i = 0; i < kSources.size(); ++i)
    if (source == kSources[i]) return {static_cast<Source>(i), index, name, {bytes.c_str(), bytes.size()}};
  throw std::invalid_argument("no source of a buffer is called " + source);
}

nb::list arguments(const Library& library, const std::string& kernel) {
  nb::list found;
  const Kernel* known = library.find(kernel);
  if (!known) throw std::invalid_argument("the library holds no kernel " + kernel);
  for (const ArgDesc& argument : known->arguments)
    found.append(nb::make_tuple(kArgumentKinds[static_cast<size_t>(argument.kind)], argument.index, argument.name));
  return found;
}

nb::list kernel_names(const Library& library) {
  nb::list names;
  for (const Kernel& kernel : library.kernels()) names.append(kernel.name.c_str());
  return names;
}

nb::dict to_dict(const Counters& c) {
  nb::dict d;
  d["dispatches"] = 1;
  d["threadgroups"] = c.threadgroups;
  d["barriers"] = c.barriers;
  d["simdgroup_barriers"] = c.simdgroup_barriers;
  d["simd_operations"] = c.simd_operations;
  d["atomics"] = c.atomics;
  d["accesses"] = c.accesses;
  d["device_read_bytes"] = c.device_read_bytes;
  d["device_write_bytes"] = c.device_write_bytes;
  d["device_read_requests"] = c.device_read_requests;
  d["device_write_requests"] = c.device_write_requests;
  d["device_read_lines"] = c.device_read_lines;
  d["device_write_lines"] = c.device_write_lines;
  d["threadgroup_read_bytes"] = c.threadgroup_read_bytes;
  d["threadgroup_write_bytes"] = c.threadgroup_write_bytes;
  d["threadgroup_requests"] = c.threadgroup_requests;
  d["bank_conflicts"] = c.bank_conflicts;
  return d;
}

nb::dict to_dict(const Finding& f) {
  nb::dict d;
  d["kind"] = kind_name(f.kind);
  d["fatal"] = is_fatal(f.kind);
  d["count"] = f.count;
  d["pc"] = f.pc;
  d["other_pc"] = f.other_pc;
  d["file"] = f.site.file ? f.site.file : "";
  d["line"] = f.site.line;
  d["thread"] = f.thread;
  d["threadgroup"] = f.threadgroup;
  d["other_thread"] = f.other_thread;
  d["other_threadgroup"] = f.other_threadgroup;
  d["buffer"] = f.buffer;
  d["name"] = f.name;
  d["offset"] = f.offset;
  d["size"] = f.size;
  d["note"] = f.note;
  return d;
}

nb::dict to_dict(const Record& record) {
  nb::list found;
  for (const Finding& finding : record.findings) found.append(to_dict(finding));
  nb::dict d;
  d["tag"] = record.tag;
  d["kernel"] = record.kernel;
  d["threads"] = nb::make_tuple(record.grid.x, record.grid.y, record.grid.z);
  d["threadgroup"] = nb::make_tuple(record.threadgroup.x, record.threadgroup.y, record.threadgroup.z);
  d["checked"] = record.checked;
  d["stopped"] = record.stopped;
  d["seconds"] = record.seconds;
  d["findings"] = found;
  d["counters"] = to_dict(record.counters);
  const size_t traced = record.trace.size() * sizeof(TracedAccess);
  d["trace"] = nb::bytes(reinterpret_cast<const char*>(record.trace.data()), traced);
  return d;
}

nb::list take(std::optional<int64_t> tag) {
  nb::list taken;
  for (const Record& record : take_records(tag)) taken.append(to_dict(record));
  return taken;
}

std::vector<mx::array> launch_kernel(std::shared_ptr<const Library> library, const std::string& kernel,
                                     const std::vector<mx::array>& inputs, const std::vector<PythonBinding>& bindings,
                                     const std::vector<std::vector<int>>& shapes, const std::vector<mx::Dtype>& dtypes,
                                     std::optional<float> init_value, const Size& grid, const Size& threadgroup,
                                     const std::map<int, size_t>& threadgroup_bytes, int order, uint64_t step_limit,
                                     double time_limit, int trace, bool raise_on_fatal, int64_t tag,
                                     mx::StreamOrDevice stream) {
  const Kernel* known = library->find(kernel);
  if (!known) throw std::invalid_argument("the library holds no kernel " + kernel);
  Call call;
  call.dispatch = {std::move(library), known, to_uint3(grid), to_uint3(threadgroup), threadgroup_bytes,
                   {order, step_limit, time_limit, trace, raise_on_fatal, tag}};
  for (const PythonBinding& binding : bindings) call.bindings.push_back(to_binding(binding));
  call.init_value = init_value;
  std::vector<mx::Shape> sizes;
  for (const auto& shape : shapes) sizes.emplace_back(shape.begin(), shape.end());
  return launch(std::move(call), inputs, sizes, dtypes, stream);
}

}  // namespace

NB_MODULE(_emulator, module) {
  nb::class_<Library>(module, "Library")
      .def_prop_ro("checked", &Library::checked)
      .def("kernels", &kernel_names)
      .def("arguments", &arguments, nb::arg("kernel"));
  module.def("load", [](const std::string& path) { return std::make_shared<Library>(path); }, nb::arg("path"));
  module.def("launch", &launch_kernel, nb::arg("library"), nb::arg("kernel"), nb::arg("inputs"), nb::arg("bindings"),
             nb::arg("shapes"), nb::arg("dtypes"), nb::arg("init_value").none(), nb::arg("grid"),
             nb::arg("threadgroup"), nb::arg("threadgroup_bytes"), nb::arg("order"), nb::arg("step_limit"),
             nb::arg("time_limit"), nb::arg("trace"), nb::arg("raise_on_fatal"), nb::arg("tag"),
             nb::arg("stream").none());
  module.def("take_records", &take, nb::arg("tag").none());
  module.def("identity", [](const mx::array& x) { return x; }, nb::arg("x"));
}
