// Barriers. Which memory they order is up to the flags; the runtime holds kernels to it.
#pragma once
#include "../../native/abi.h"
#include "integer.h"

namespace metal {

enum class mem_flags : unsigned { mem_none = 0, mem_device = 1, mem_threadgroup = 2, mem_texture = 4 };
MSL_INLINE constexpr mem_flags operator|(mem_flags a, mem_flags b) {
  return static_cast<mem_flags>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
MSL_INLINE constexpr mem_flags operator&(mem_flags a, mem_flags b) {
  return static_cast<mem_flags>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}

MSL_INLINE void threadgroup_barrier(mem_flags flags, ::msl::Caller site = ::msl::Caller::current()) {
  ::msl::msl_rt_barrier(static_cast<unsigned>(flags), site);
}
MSL_INLINE void simdgroup_barrier(mem_flags flags, ::msl::Caller site = ::msl::Caller::current()) {
  ::msl::msl_rt_simdgroup_barrier(static_cast<unsigned>(flags), site);
}

}  // namespace metal
