// A compiled kernel library: a shared object whose static objects announce its kernels while it loads.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "abi.h"

namespace msl {

struct Kernel {
  std::string name;
  Entry entry;
  std::vector<ArgDesc> arguments;
};

class Library {
 public:
  // Throws std::runtime_error with the loader's words. A library stays loaded: findings point into its strings.
  explicit Library(const std::string& path);
  const Kernel* find(const std::string& name) const;
  const std::vector<Kernel>& kernels() const { return kernels_; }
  bool checked() const { return checked_; }
  uintptr_t begin() const { return begin_; }
  uintptr_t end() const { return end_; }

 private:
  friend void msl_rt_register(const char*, Entry, const ArgDesc*, int, bool);
  void locate(void* handle);

  std::vector<Kernel> kernels_;
  bool checked_ = false;
  uintptr_t begin_ = 0, end_ = 0;
};

}  // namespace msl
