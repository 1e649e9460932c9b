#include "stacks.h"

#include <sys/mman.h>
#include <unistd.h>

#include "reserve.h"

namespace msl {

void Stacks::reserve() {
  guard_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  base_ = reserve_memory(stride() * kMaxThreads, stride() * kMaxThreads).begin;
}

void Stacks::reset() {
  if (!base_) reserve();
  free_count_ = 0;
  for (int stack = kMaxThreads - 1; stack >= 0; --stack) free_[free_count_++] = stack;
}

int Stacks::take() {
  const int stack = free_[--free_count_];
  if (!guarded_[stack]) {
    mprotect(base_ + stack * stride(), guard_, PROT_NONE);
    guarded_[stack] = true;
  }
  return stack;
}

char* Stacks::top(int stack) const {
  // Tops a multiple of 4 KiB apart would all meet in the same few sets of the first-level cache.
  return base_ + (stack + 1) * stride() - static_cast<size_t>(stack % 32) * 192;
}

int Stacks::owner(uintptr_t address) const {
  const uintptr_t offset = address - reinterpret_cast<uintptr_t>(base_);
  return base_ && offset < stride() * kMaxThreads ? static_cast<int>(offset / stride()) : -1;
}

}  // namespace msl
