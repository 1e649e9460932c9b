// What a translated kernel and the runtime know of each other. Included by both sides.
#pragma once
#include <cstddef>
#include <cstdint>
#include <source_location>

namespace msl {

inline constexpr uint32_t kSimdWidth = 32;
inline constexpr uint32_t kMaxThreads = 1024;      // of one threadgroup
inline constexpr uint32_t kMaxBuffers = 31;        // Metal's argument table
inline constexpr size_t kThreadgroupMemory = 32 << 10;

// Where a kernel argument gets its value: a buffer, or one of Metal's [[attributes]].
enum ArgKind : int {
  kBuffer,
  kThreadgroup,
  kThreadPositionInGrid,
  kThreadPositionInThreadgroup,
  kThreadgroupPositionInGrid,
  kThreadIndexInThreadgroup,
  kThreadIndexInSimdgroup,
  kSimdgroupIndexInThreadgroup,
  kThreadsPerThreadgroup,          // the actual size: smaller at the edge of the grid
  kDispatchThreadsPerThreadgroup,  // the size that was asked for
  kThreadgroupsPerGrid,
  kThreadsPerGrid,
  kSimdgroupsPerThreadgroup,
  kDispatchSimdgroupsPerThreadgroup,
  kThreadsPerSimdgroup,
  kGridOrigin,
  kThreadIndexInQuadgroup,
  kQuadgroupIndexInThreadgroup,
  kQuadgroupsPerThreadgroup,
  kUnknown,
};

struct ArgDesc {
  ArgKind kind;
  int index;  // of [[buffer(i)]] and [[threadgroup(i)]], else -1
  const char* name;
};

struct Uint3 {
  uint32_t x, y, z;
};

// A place in the user's source.
struct Site {
  const char* file = nullptr;
  uint32_t line = 0;

  constexpr Site() = default;
  constexpr Site(const char* file, uint32_t line) : file(file), line(line) {}
  constexpr Site(std::source_location at) : file(at.file_name()), line(at.line()) {}
};
// As a default argument, the place of the call.
using Caller = std::source_location;

// Everything one thread can ask for when it starts.
struct ThreadContext {
  void* buffers[kMaxBuffers];
  void* threadgroup[kMaxBuffers];
  Uint3 thread_position_in_grid, thread_position_in_threadgroup, threadgroup_position_in_grid;
  Uint3 threads_per_threadgroup, dispatch_threads_per_threadgroup, threadgroups_per_grid, threads_per_grid;
  uint32_t thread_index_in_threadgroup;
};

using Entry = void (*)(const ThreadContext&);
// What a simdgroup does together: slots[lane] is valid where bit `lane` of `active` is set.
using SimdOperation = void (*)(void* const* slots, uint32_t active);

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kCheckedBuild = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kCheckedBuild = true;
#else
inline constexpr bool kCheckedBuild = false;
#endif
#else
inline constexpr bool kCheckedBuild = false;
#endif

extern "C" {
#pragma GCC visibility push(default)
uint32_t msl_rt_lane();  // thread_index_in_simdgroup of the thread that runs
void msl_rt_register(const char* name, Entry entry, const ArgDesc* arguments, int count, bool checked);
void msl_rt_barrier(unsigned flags, Site site);
void msl_rt_simdgroup_barrier(unsigned flags, Site site);
void msl_rt_simd(SimdOperation operation, void* slot, Site site);
void* msl_rt_threadgroup_variable(const void* key, size_t bytes, size_t element, const char* name, Site site);
void msl_rt_atomic(const volatile void* address, size_t bytes, Site site);
void msl_rt_read(const void* address, size_t bytes, Site site);
void msl_rt_write(void* address, size_t bytes, Site site);
#pragma GCC visibility pop
}

// One static object per kernel announces it while its library is being loaded.
struct Registration {
  Registration(const char* name, Entry entry, const ArgDesc* arguments, int count) {
    msl_rt_register(name, entry, arguments, count, kCheckedBuild);
  }
};

}  // namespace msl
