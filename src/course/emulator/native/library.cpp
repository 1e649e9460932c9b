#include "library.h"

#include <dlfcn.h>
#ifdef __linux__
#include <link.h>
#endif

#include <algorithm>
#include <mutex>
#include <stdexcept>

namespace msl {

namespace {

std::mutex mutex;
Library* loading = nullptr;

// Kernels are linked against nothing: let them find this module's functions by name.
void show_own_symbols() {
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&msl_rt_register), &own))
    dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

}  // namespace

Library::Library(const std::string& path) {
  const std::lock_guard lock(mutex);
  show_own_symbols();
  loading = this;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  loading = nullptr;
  if (!handle) throw std::runtime_error(dlerror());
  if (kernels_.empty()) throw std::runtime_error(path + ": holds no kernel, or is loaded already");
  locate(handle);
}

// The addresses of its code and constants.
void Library::locate(void*) {
  Dl_info info{};
  dladdr(reinterpret_cast<const void*>(kernels_[0].entry), &info);
  begin_ = reinterpret_cast<uintptr_t>(info.dli_fbase);
  end_ = begin_;
#ifdef __linux__
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* data) {
        auto* self = static_cast<Library*>(data);
        bool own = false;
        uintptr_t last = 0;
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const auto& segment = object->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
          own = own || (begin <= self->begin_ && self->begin_ < begin + segment.p_memsz);
          last = std::max(last, begin + segment.p_memsz);
        }
        if (own) self->end_ = last;
        return static_cast<int>(own);
      },
      this);
#endif
  constexpr uintptr_t kGuess = 16 << 20;  // where the system does not say
  if (end_ == begin_) end_ = begin_ + kGuess;
}

const Kernel* Library::find(const std::string& name) const {
  const auto found = std::find_if(kernels_.begin(), kernels_.end(), [&](const Kernel& k) { return k.name == name; });
  return found == kernels_.end() ? nullptr : &*found;
}

extern "C" void msl_rt_register(const char* name, Entry entry, const ArgDesc* arguments, int count, bool checked) {
  if (!loading) return;
  loading->kernels_.push_back({name, entry, {arguments, arguments + count}});
  loading->checked_ = checked;
}

}  // namespace msl
