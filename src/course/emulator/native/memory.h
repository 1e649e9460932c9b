// The memory that kernels see: copies of the buffers and the threadgroup variables, far apart in one arena, so that an
// access beside one of them falls into nothing. What is known of every element stands in a cell of its own.
#pragma once
#include <cstddef>
#include <cstdint>

#include "reserve.h"
#include "scheduler.h"

namespace msl {

// Threads that did the same kind of access to one element: the last of them, and one of another threadgroup, or else of
// another simdgroup, or else another lane. Whatever later access may race with any of the party races with these two.
struct Party {
  uint64_t last, other;  // identities; 0: none
};

// What a checked launch knows of one element (of 1, 2 or 4 bytes; wider ones have several cells). Masks are by byte.
struct Cell {
  uint64_t writer;
  Party readers, updaters;  // updaters: by atomic functions, which race with none of their kind
  uint32_t writer_pc, reader_pc, other_reader_pc;
  uint32_t stamp;  // the threadgroup that this holds for (threadgroup memory only)
  uint8_t written, read, updated, defined;
  bool many_readers, many_updaters;  // more than one lane of the last one's simdgroup, in the same phase
};
static_assert(sizeof(Cell) == 64, "one cache line");

enum class Role : uint8_t { nothing, constant, input, output, threadgroup };

struct Region {
  char* begin = nullptr;
  size_t size = 0;
  Cell* cells = nullptr;  // none for what is never written
  uint8_t shift = 0;      // log2 of the bytes per cell
  Role role = Role::nothing;
  int buffer = -1;
  const char* name = nullptr;

  bool writable() const { return role >= Role::output; }
  Space space() const { return role == Role::threadgroup ? Space::threadgroup : Space::device; }
  size_t cell_count() const { return (size + (size_t{1} << shift) - 1) >> shift; }
};

class Memory {
 public:
  void begin_launch(bool checked);
  void end_launch();
  void begin_threadgroup();
  // A buffer of `size` bytes with elements of `element` bytes. `defined`: its bytes count as written.
  char* add_buffer(Role role, int buffer, const char* name, size_t size, size_t element, bool defined);
  // The threadgroup variable that `key` stands for; made at the first call. nullptr where the limit is exceeded.
  char* threadgroup_variable(const void* key, size_t size, size_t element, const char* name);
  size_t threadgroup_bytes() const { return threadgroup_bytes_; }

  bool contains(const void* address) const { return offset(address) < size_; }
  size_t offset(const void* address) const {
    return static_cast<size_t>(static_cast<const char*>(address) - arena_);
  }
  const Region& region_at(size_t offset) const { return regions_[granules_[offset >> kGranuleBits]]; }
  const Region* nearest(size_t offset) const;  // nullptr where there is none
  const Region& region(int index) const { return regions_[index]; }
  int region_count() const { return region_count_; }

 private:
  struct Variable {
    const void* key;
    int region;
  };

  static constexpr int kGranuleBits = 6;
  static constexpr int kMostRegions = 200;
  static constexpr size_t kThreadgroupArena = 4 << 20, kThreadgroupGap = 32 << 10;

  void reserve();
  char* place(size_t size, size_t gap);
  Region& add_region(Role role, char* begin, size_t size, size_t element);
  Cell* take_cells(size_t count);

  bool checked_ = false;
  char* arena_ = nullptr;
  size_t size_ = 0, top_ = 0, threadgroup_top_ = 0, threadgroup_bytes_ = 0;
  uint8_t* granules_ = nullptr;  // which region every 64 bytes belong to
  Cell* cells_ = nullptr;
  size_t cells_reserved_ = 0, cells_used_ = 0;
  Region regions_[kMostRegions];  // 0: none
  int region_count_ = 1;
  Variable variables_[64];
  int variable_count_ = 0;
};

extern Memory memory;

}  // namespace msl
