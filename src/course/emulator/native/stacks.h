// The stacks of a threadgroup's threads: 64 KiB each, below it a page that faults, so that an overflow is seen.
#pragma once
#include <cstddef>
#include <cstdint>

#include "abi.h"

namespace msl {

class Stacks {
 public:
  void reset();  // all are free
  int take();
  void give_back(int stack) { free_[free_count_++] = stack; }
  char* top(int stack) const;
  // The stack whose memory or guard page holds `address`; -1 for none.
  int owner(uintptr_t address) const;

 private:
  void reserve();
  size_t stride() const { return kBytes + guard_; }

  static constexpr size_t kBytes = 64 << 10;
  char* base_ = nullptr;
  size_t guard_ = 0;
  bool guarded_[kMaxThreads] = {};
  int free_[kMaxThreads];
  int free_count_ = 0;
};

}  // namespace msl
