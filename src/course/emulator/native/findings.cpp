#include "findings.h"

#include <cstdio>

#include "scheduler.h"

namespace msl {

Findings findings;

namespace {

constexpr const char* kNames[] = {
    "out_of_bounds_read", "out_of_bounds_write", "write_to_input", "uninitialized_threadgroup_read",
    "uninitialized_device_read", "race_write_write", "race_read_write", "race_write_read", "divergent_barrier",
    "barrier_after_return", "partial_simdgroup", "array_index", "division_by_zero", "step_limit", "time_limit",
    "threadgroup_memory", "stack_overflow", "wild_pointer", "null_pointer", "foreign_stack", "illegal_instruction",
    "output_not_written",
};

}  // namespace

const char* kind_name(Kind kind) { return kNames[static_cast<int>(kind)]; }

bool is_fatal(Kind kind) {
  switch (kind) {
    case Kind::divergent_barrier:
    case Kind::barrier_after_return:
    case Kind::array_index:
    case Kind::division_by_zero:
    case Kind::step_limit:
    case Kind::time_limit:
    case Kind::threadgroup_memory:
    case Kind::stack_overflow:
    case Kind::wild_pointer:
    case Kind::null_pointer:
    case Kind::illegal_instruction:
      return true;
    default:
      return false;
  }
}

void Finding::set_name(const char* text) { std::snprintf(name, sizeof name, "%s", text ? text : ""); }

Finding* Findings::add(Kind kind, uint64_t pc, Site site) {
  for (int i = 0; i < count_; ++i) {
    Finding& known = items_[i];
    if (known.kind == kind && known.pc == pc && known.site.line == site.line) {
      ++known.count;
      return nullptr;
    }
  }
  if (count_ == kMost) return nullptr;
  Finding& fresh = items_[count_++];
  fresh = Finding{};
  fresh.kind = kind;
  fresh.pc = pc;
  fresh.site = site;
  fresh.thread = scheduler.current();
  fresh.threadgroup = scheduler.threadgroup();
  return &fresh;
}

}  // namespace msl
