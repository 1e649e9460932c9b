// What a launch did, as numbers that do not depend on the machine: the same kernel and grid give the same numbers.
#pragma once
#include <cstdint>

namespace msl {

struct Counters {
  // Filled by both builds.
  uint64_t threadgroups = 0, barriers = 0, simdgroup_barriers = 0, simd_operations = 0;
  // Filled by the checked build. Bytes are what the threads asked for.
  uint64_t device_read_bytes = 0, device_write_bytes = 0, threadgroup_read_bytes = 0, threadgroup_write_bytes = 0;
  uint64_t atomics = 0, accesses = 0;
  // By simdgroup: how many 128-byte lines its requests touch, and cycles lost to two words in one of 32 banks.
  uint64_t device_read_requests = 0, device_write_requests = 0, device_read_lines = 0, device_write_lines = 0;
  uint64_t threadgroup_requests = 0, bank_conflicts = 0;
};

extern Counters counters;

}  // namespace msl
