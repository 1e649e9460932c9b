// Address space that costs nothing until it is touched.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <stdexcept>

namespace msl {

struct Reserved {
  char* begin;
  size_t size;
};

// `wanted` zeroed bytes, or half as many, and so on down to `least`, where the system promises no more.
inline Reserved reserve_memory(size_t wanted, size_t least) {
#ifdef MAP_NORESERVE
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
#else
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
#endif
  for (size_t size = wanted; size >= least && size > 0; size /= 2) {
    void* begin = mmap(nullptr, size, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    if (begin != MAP_FAILED) return {static_cast<char*>(begin), size};
  }
  throw std::runtime_error("kernel emulator: the system gives no address space (is `ulimit -v` set?)");
}

// Drop what was written: the pages read as zeros again.
inline void forget_memory(char* begin, size_t size) {
#ifdef __linux__
  madvise(begin, size, MADV_DONTNEED);
#else
  mmap(begin, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
#endif
}

}  // namespace msl
