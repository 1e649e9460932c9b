#include "launch.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "faults.h"
#include "memory.h"
#include "scheduler.h"
#include "shuffle.h"
#include "traffic.h"

namespace msl {

namespace {

std::mutex one_at_a_time;

uint32_t ceil_div(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

// Of this thread: what it takes is not what a busy machine makes it wait for.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class Launch {
 public:
  Launch(const Dispatch& dispatch, const std::vector<Buffer>& buffers) : dispatch_(dispatch), buffers_(buffers) {
    memory.begin_launch(checked());
    findings.clear();
    counters = Counters{};
    traffic.begin_launch();
    checks = Checks{};
    checks.on = checked();
    checks.library_begin = dispatch.library->begin();
    checks.library_end = dispatch.library->end();
  }
  ~Launch() { memory.end_launch(); }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  Record run() {
    bind();
    if (dispatch_.options.trace >= 0 && checked()) {
      constexpr size_t kMostTraced = 4'000'000;
      checks.trace.reserve(kMostTraced);
      checks.traced_threadgroup = dispatch_.options.trace;
    }
    const double start = cpu_seconds();
    bool finished = false;
    run_guarded(dispatch_.options.time_limit, [&] { finished = run_grid(); });
    const double spent = cpu_seconds() - start;
    if (checked() && finished) find_missing_outputs();
    copy_outputs(finished);
    const auto all = findings.all();
    return {dispatch_.options.tag, dispatch_.kernel->name, dispatch_.grid, dispatch_.threadgroup, checked(), !finished,
            spent, {all.begin(), all.end()}, counters, std::move(checks.trace)};
  }

 private:
  bool checked() const { return dispatch_.library->checked(); }

  void bind() {
    context_ = {};
    context_.threads_per_grid = dispatch_.grid;
    context_.dispatch_threads_per_threadgroup = dispatch_.threadgroup;
    const Uint3 g = dispatch_.grid, t = dispatch_.threadgroup;
    groups_ = {ceil_div(g.x, t.x), ceil_div(g.y, t.y), ceil_div(g.z, t.z)};
    context_.threadgroups_per_grid = groups_;
    for (size_t i = 0; i < buffers_.size(); ++i) context_.buffers[i] = bind_buffer(static_cast<int>(i), buffers_[i]);
  }

  // A fast launch reads its inputs in place; what it writes is in the arena, so that it cannot spoil Python's memory.
  char* bind_buffer(int index, const Buffer& buffer) {
    const bool writes = buffer.role == Role::output;
    if (!checked() && !writes) return buffer.data;
    const char* name = buffer.name.c_str();
    char* copy = memory.add_buffer(buffer.role, index, name, buffer.size, buffer.element, buffer.defined);
    copies_.push_back({&buffer, copy});
    if (buffer.defined) {
      std::memcpy(copy, buffer.data + buffer.first, buffer.size);
    } else {
      std::memset(copy, 0xFF, buffer.size);
    }
    return copy - buffer.first;
  }

  bool run_grid() {
    scheduler.prepare(dispatch_.kernel->entry, context_, dispatch_.options.order, dispatch_.options.step_limit);
    const auto [gx, gy, gz] = groups_;
    std::vector<uint32_t> order(size_t{gx} * gy * gz);
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    Shuffle(dispatch_.options.order, ~uint64_t{0})(order.data(), order.data() + order.size());
    for (const uint32_t index : order) {
      memory.begin_threadgroup();
      if (!give_threadgroup_arguments()) return false;
      const Uint3 at{index % gx, index / gx % gy, index / (gx * gy)};
      if (!scheduler.run_threadgroup(index, at, size_at(at))) return false;
    }
    return true;
  }

  // Smaller at the edge, as Metal's dispatchThreads makes it.
  Uint3 size_at(Uint3 at) const {
    const Uint3 g = dispatch_.grid, t = dispatch_.threadgroup;
    return {std::min(t.x, g.x - at.x * t.x), std::min(t.y, g.y - at.y * t.y), std::min(t.z, g.z - at.z * t.z)};
  }

  bool give_threadgroup_arguments() {
    for (const ArgDesc& argument : dispatch_.kernel->arguments) {
      if (argument.kind != kThreadgroup) continue;
      const auto length = dispatch_.threadgroup_bytes.find(argument.index);
      if (length == dispatch_.threadgroup_bytes.end()) continue;
      constexpr size_t kSmallestElement = 2;  // its type is not known here
      char* begin = memory.threadgroup_variable(&argument, length->second, kSmallestElement, argument.name);
      if (!begin) {
        if (Finding* finding = findings.add(Kind::threadgroup_memory, 0, {})) {
          finding->size = memory.threadgroup_bytes();
          finding->set_name(argument.name);
        }
        return false;
      }
      scheduler.context().threadgroup[argument.index] = begin;
    }
    return true;
  }

  void find_missing_outputs() {
    for (int i = 1; i < memory.region_count(); ++i) {
      const Region& region = memory.region(i);
      if (region.role == Role::output) find_missing(region);
    }
  }

  void find_missing(const Region& region) {
    size_t missing = 0, first = 0;
    for (size_t at = 0; at < region.size; ++at) {
      const size_t in_cell = at & ((size_t{1} << region.shift) - 1);
      if (region.cells[at >> region.shift].defined >> in_cell & 1) continue;
      if (missing++ == 0) first = at;
    }
    if (missing == 0) return;
    // One finding per buffer: its index takes the line's place in telling them apart.
    Finding* finding = findings.add(Kind::output_not_written, 0, {nullptr, static_cast<uint32_t>(region.buffer) + 1});
    if (!finding) return;
    finding->site = {};
    finding->thread = finding->threadgroup = -1;
    finding->buffer = region.buffer;
    finding->set_name(region.name);
    finding->offset = static_cast<int64_t>(first);
    finding->size = missing;
  }

  // What a stopped launch computed is worth nothing, and must not look like a value.
  void copy_outputs(bool finished) {
    for (const auto& [buffer, copy] : copies_) {
      if (buffer->role != Role::output) continue;
      if (finished || !buffer->floating) {
        std::memcpy(buffer->data + buffer->first, copy, buffer->size);
      } else {
        std::memset(buffer->data + buffer->first, 0xFF, buffer->size);
      }
    }
  }

  struct Copy {
    const Buffer* buffer;
    char* data;
  };

  const Dispatch& dispatch_;
  const std::vector<Buffer>& buffers_;
  ThreadContext context_;
  Uint3 groups_{};
  std::vector<Copy> copies_;
};

}  // namespace

Record run(const Dispatch& dispatch, const std::vector<Buffer>& buffers) {
  const std::lock_guard lock(one_at_a_time);
  return Launch(dispatch, buffers).run();
}

}  // namespace msl
