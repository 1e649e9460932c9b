// Judges every access that a checked kernel makes to memory: is it inside a buffer, may it write there, was the value
// ever written, and could another thread touch it at the same time?
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "abi.h"
#include "memory.h"
#include "traffic.h"

namespace msl {

enum class Access { read, write, atomic };

// `pc`: the return address of the check, or 0 where `site` says the place.
void check_access(const void* address, size_t size, Access access, uintptr_t pc, Site site);

// Set by a launch, read by every access.
struct Checks {
  bool on = false;
  uintptr_t library_begin = 0, library_end = 0;  // where the kernel's own code and constants are
  int32_t traced_threadgroup = -1;
  std::vector<TracedAccess> trace;  // reserved by the launch: no allocation on a thread's stack
};

extern Checks checks;

}  // namespace msl
