// The functions that `-fsanitize=thread` and `-fsanitize=bounds,integer-divide-by-zero` call. Kernels are compiled with
// these flags and linked without them, so the calls come here and not to the sanitizers' own libraries.
#include <cstdio>
#include <cstring>

#include "access.h"
#include "findings.h"

#define MSL_RETURN_ADDRESS reinterpret_cast<uintptr_t>(__builtin_return_address(0))
#define MSL_ACCESS(NAME, SIZE, ACCESS) \
  void NAME(void* address) { check_access(address, SIZE, Access::ACCESS, MSL_RETURN_ADDRESS, {}); }
#define MSL_READ_AND_WRITE(NAME, SIZE)                                      \
  void NAME(void* address) {                                                \
    check_access(address, SIZE, Access::read, MSL_RETURN_ADDRESS, {});      \
    check_access(address, SIZE, Access::write, MSL_RETURN_ADDRESS, {});     \
  }
#define MSL_ACCESSES(SIZE)                                          \
  MSL_ACCESS(__tsan_read##SIZE, SIZE, read)                         \
  MSL_ACCESS(__tsan_write##SIZE, SIZE, write)                       \
  MSL_ACCESS(__tsan_unaligned_read##SIZE, SIZE, read)               \
  MSL_ACCESS(__tsan_unaligned_write##SIZE, SIZE, write)             \
  MSL_ACCESS(__tsan_volatile_read##SIZE, SIZE, read)                \
  MSL_ACCESS(__tsan_volatile_write##SIZE, SIZE, write)              \
  MSL_ACCESS(__tsan_unaligned_volatile_read##SIZE, SIZE, read)      \
  MSL_ACCESS(__tsan_unaligned_volatile_write##SIZE, SIZE, write)    \
  MSL_READ_AND_WRITE(__tsan_read_write##SIZE, SIZE)                 \
  MSL_READ_AND_WRITE(__tsan_unaligned_read_write##SIZE, SIZE)

using namespace msl;

namespace {

// As the compilers lay them out for the undefined-behaviour sanitizer.
struct SourceLocation {
  const char* file;
  uint32_t line, column;
};
struct TypeDescriptor {
  uint16_t kind, info;
  char name[1];
};
struct OutOfBoundsData {
  SourceLocation location;
  const TypeDescriptor* array;
  const TypeDescriptor* index;
};

void report_index(const OutOfBoundsData* data, uintptr_t index) {
  if (Finding* finding = findings.add(Kind::array_index, 0, {data->location.file, data->location.line})) {
    finding->offset = static_cast<int64_t>(index);
    std::snprintf(finding->note, sizeof finding->note, "%s", data->array->name);
  }
  scheduler.stop();
}

void report_division(const SourceLocation* location) {
  findings.add(Kind::division_by_zero, 0, {location->file, location->line});
  scheduler.stop();
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

MSL_ACCESSES(1)
MSL_ACCESSES(2)
MSL_ACCESSES(4)
MSL_ACCESSES(8)
MSL_ACCESSES(16)

void __tsan_read_range(void* address, size_t size) {
  check_access(address, size, Access::read, MSL_RETURN_ADDRESS, {});
}

void __tsan_write_range(void* address, size_t size) {
  check_access(address, size, Access::write, MSL_RETURN_ADDRESS, {});
}

void* __tsan_memcpy(void* to, const void* from, size_t size) {
  check_access(from, size, Access::read, MSL_RETURN_ADDRESS, {});
  check_access(to, size, Access::write, MSL_RETURN_ADDRESS, {});
  return std::memcpy(to, from, size);
}

void* __tsan_memmove(void* to, const void* from, size_t size) {
  check_access(from, size, Access::read, MSL_RETURN_ADDRESS, {});
  check_access(to, size, Access::write, MSL_RETURN_ADDRESS, {});
  return std::memmove(to, from, size);
}

void* __tsan_memset(void* to, int value, size_t size) {
  check_access(to, size, Access::write, MSL_RETURN_ADDRESS, {});
  return std::memset(to, value, size);
}

void __ubsan_handle_out_of_bounds(OutOfBoundsData* data, uintptr_t index) { report_index(data, index); }
void __ubsan_handle_out_of_bounds_abort(OutOfBoundsData* data, uintptr_t index) { report_index(data, index); }
void __ubsan_handle_divrem_overflow(SourceLocation* data, uintptr_t, uintptr_t) { report_division(data); }
void __ubsan_handle_divrem_overflow_abort(SourceLocation* data, uintptr_t, uintptr_t) { report_division(data); }

}
#pragma GCC visibility pop
