// What is wrong with a kernel, collected while it runs. Nothing here allocates: it is called on the threads' stacks.
#pragma once
#include <cstdint>
#include <span>

#include "abi.h"

namespace msl {

enum class Kind {
  out_of_bounds_read,
  out_of_bounds_write,
  write_to_input,
  uninitialized_threadgroup_read,
  uninitialized_device_read,
  race_write_write,
  race_read_write,
  race_write_read,
  divergent_barrier,
  barrier_after_return,
  partial_simdgroup,
  array_index,
  division_by_zero,
  step_limit,
  time_limit,
  threadgroup_memory,
  stack_overflow,
  wild_pointer,
  null_pointer,
  foreign_stack,
  illegal_instruction,
  output_not_written,
};

const char* kind_name(Kind kind);
bool is_fatal(Kind kind);  // the launch stops there, and its outputs are worthless

struct Finding {
  Kind kind{};
  uint64_t count = 1;           // how often, at this place
  uint64_t pc = 0, other_pc = 0;  // return addresses as offsets into the kernel's library; 0: not known
  Site site;                   // known without a pc for barriers, simdgroup functions, array bounds
  int32_t thread = -1, threadgroup = -1, other_thread = -1, other_threadgroup = -1;
  int32_t buffer = -1;
  char name[48] = {};           // of the buffer or the threadgroup variable
  int64_t offset = 0;           // bytes from its start
  uint64_t size = 0;
  char note[96] = {};

  void set_name(const char* text);  // cut where it is too long
};

// One finding per kind and place, at most 32 per launch.
class Findings {
 public:
  void clear() { count_ = 0; }
  // The new finding, to be filled in; nullptr where this kind is already known for this place.
  Finding* add(Kind kind, uint64_t pc, Site site);
  std::span<const Finding> all() const { return {items_, static_cast<size_t>(count_)}; }

 private:
  static constexpr int kMost = 32;
  Finding items_[kMost];
  int count_ = 0;
};

extern Findings findings;

}  // namespace msl
