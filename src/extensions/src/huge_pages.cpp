#include "huge_pages.h"

#if defined(__linux__)

#include <sys/mman.h>

#include <cstdint>
#include <mutex>
#include <unordered_set>

#if !defined(MADV_COLLAPSE)
#define MADV_COLLAPSE 25  // since Linux 6.1; headers of older systems lack the name
#endif

namespace tiny_llm {

void prefer_huge_pages(const void* data, size_t bytes) {
  constexpr uintptr_t kPage = uintptr_t{2} << 20;
  constexpr size_t kSmall = size_t{64} << 10;
  static std::mutex mutex;
  static std::unordered_set<const void*> seen;
  if (bytes < kSmall) {
    return;
  }
  {
    const std::lock_guard lock(mutex);
    if (!seen.insert(data).second) {
      return;
    }
  }
  // Matrices lie next to each other, so whole pages round about are asked for: most are filled by a neighbour. Where a
  // page holds no memory, or the system cannot, the hint has no effect.
  const uintptr_t first = reinterpret_cast<uintptr_t>(data) / kPage * kPage;
  const uintptr_t last = (reinterpret_cast<uintptr_t>(data) + bytes + kPage - 1) / kPage * kPage;
  for (uintptr_t page = first; page < last; page += kPage) {
    madvise(reinterpret_cast<void*>(page), kPage, MADV_COLLAPSE);
  }
}

}  // namespace tiny_llm

#else

namespace tiny_llm {

void prefer_huge_pages(const void*, size_t) {}

}  // namespace tiny_llm

#endif
