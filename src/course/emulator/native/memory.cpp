#include "memory.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace msl {

Memory memory;

void Memory::reserve() {
  constexpr size_t kLeast = size_t{256} << 20;
  const Reserved arena = reserve_memory(size_t{16} << 30, kLeast);
  arena_ = arena.begin;
  size_ = arena.size;
  granules_ = reinterpret_cast<uint8_t*>(reserve_memory(size_ >> kGranuleBits, size_ >> kGranuleBits).begin);
  const Reserved cells = reserve_memory(size_t{32} << 30, kLeast);
  cells_ = reinterpret_cast<Cell*>(cells.begin);
  cells_reserved_ = cells.size / sizeof(Cell);
}

void Memory::begin_launch(bool checked) {
  if (!arena_) reserve();
  checked_ = checked;
  top_ = kThreadgroupArena;
  threadgroup_top_ = kThreadgroupGap;
  threadgroup_bytes_ = 0;
  cells_used_ = 0;
  region_count_ = 1;
  variable_count_ = 0;
}

void Memory::end_launch() {
  // Pages touched stay ours; give back what a large launch took, keep what the next small one needs anyway.
  forget_memory(arena_ + kThreadgroupArena, top_ - kThreadgroupArena);
  forget_memory(reinterpret_cast<char*>(granules_), (top_ >> kGranuleBits) + 1);
  forget_memory(reinterpret_cast<char*>(cells_), cells_used_ * sizeof(Cell));
}

void Memory::begin_threadgroup() {
  // All bits set is NaN in every float type: a value that was never written shows.
  for (int i = 0; i < variable_count_; ++i)
    std::memset(regions_[variables_[i].region].begin, 0xFF, regions_[variables_[i].region].size);
}

char* Memory::add_buffer(Role role, int buffer, const char* name, size_t size, size_t element, bool defined) {
  Region& region = add_region(role, place(size, std::clamp(size, size_t{1} << 20, size_t{64} << 20)), size, element);
  region.buffer = buffer;
  region.name = name;
  if (defined && region.cells)
    for (size_t i = 0; i < region.cell_count(); ++i) region.cells[i].defined = 0xF;
  return region.begin;
}

char* Memory::place(size_t size, size_t gap) {
  constexpr size_t kLine = 128;
  if (top_ + gap + size + kLine > size_)
    throw std::runtime_error("kernel emulator: the buffers of one launch exceed the arena of " +
                             std::to_string(size_ >> 20) + " MiB: use smaller arrays");
  char* begin = arena_ + (top_ + gap + kLine - 1) / kLine * kLine;
  top_ = static_cast<size_t>(begin - arena_) + size;
  return begin;
}

char* Memory::threadgroup_variable(const void* key, size_t size, size_t element, const char* name) {
  for (int i = 0; i < variable_count_; ++i)
    if (variables_[i].key == key) return regions_[variables_[i].region].begin;
  constexpr size_t kAlignment = 16;
  threadgroup_bytes_ += (size + kAlignment - 1) / kAlignment * kAlignment;
  if (threadgroup_bytes_ > kThreadgroupMemory || variable_count_ == std::ssize(variables_)) return nullptr;
  char* begin = arena_ + threadgroup_top_;
  threadgroup_top_ += (size + kThreadgroupGap + 127) / 128 * 128;
  std::memset(begin, 0xFF, size);
  add_region(Role::threadgroup, begin, size, element).name = name;
  variables_[variable_count_++] = {key, region_count_ - 1};
  return begin;
}

Region& Memory::add_region(Role role, char* begin, size_t size, size_t element) {
  if (region_count_ == kMostRegions) throw std::runtime_error("kernel emulator: more buffers than a kernel can have");
  Region& region = regions_[region_count_];
  region = Region{begin, size};
  region.role = role;
  region.shift = static_cast<uint8_t>(element >= 4 ? 2 : element >= 2 ? 1 : 0);
  if (checked_ && region.writable()) region.cells = take_cells(region.cell_count());
  const size_t first = offset(begin) >> kGranuleBits, last = (offset(begin) + size + 63) >> kGranuleBits;
  std::memset(granules_ + first, region_count_, last - first);
  ++region_count_;
  return region;
}

Cell* Memory::take_cells(size_t count) {
  if (cells_used_ + count > cells_reserved_)
    throw std::runtime_error("kernel emulator: the outputs of one checked launch are too large: use smaller arrays");
  cells_used_ += count;
  return cells_ + cells_used_ - count;
}

const Region* Memory::nearest(size_t offset) const {
  const Region* best = nullptr;
  size_t least = size_;
  const char* at = arena_ + offset;
  for (int i = 1; i < region_count_; ++i) {
    const Region& region = regions_[i];
    const char* end = region.begin + region.size;
    const auto distance = static_cast<size_t>(at < region.begin ? region.begin - at : at >= end ? at - end : 0);
    if (distance < least) {
      least = distance;
      best = &region;
    }
  }
  return best;
}

}  // namespace msl
