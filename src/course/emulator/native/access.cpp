#include "access.h"

#include <algorithm>

#include "counters.h"
#include "findings.h"
#include "races.h"

namespace msl {

Checks checks;

namespace {

uint32_t relative(uintptr_t pc) { return pc ? static_cast<uint32_t>(pc - checks.library_begin) : 0; }

void describe(Finding& finding, const Region* region, const void* address, size_t size) {
  finding.size = size;
  finding.offset = reinterpret_cast<intptr_t>(address);
  if (!region) return;
  finding.buffer = region->buffer;
  finding.set_name(region->name);
  finding.offset = static_cast<const char*>(address) - region->begin;
}

[[gnu::noinline]] void report(Kind kind, const Region* region, const void* address, size_t size, uintptr_t pc,
                              Site site) {
  if (Finding* finding = findings.add(kind, relative(pc), site)) describe(*finding, region, address, size);
}

[[gnu::noinline]] void report_race(Kind kind, const Region& region, const void* address, size_t size, uintptr_t pc,
                                   Site site, uint64_t other, uint32_t other_pc) {
  Finding* finding = findings.add(kind, relative(pc), site);
  if (!finding) return;
  describe(*finding, &region, address, size);
  finding->other_thread = static_cast<int32_t>(identity_thread(other));
  finding->other_threadgroup = static_cast<int32_t>(identity_group(other)) - 1;
  finding->other_pc = other_pc;
}

// Not in the arena: constants of the library and the thread's own stack are fine, all else is a wild pointer.
[[gnu::noinline]] void check_outside(const void* address, size_t size, Access access, uintptr_t pc, Site site) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (at >= checks.library_begin && at < checks.library_end && access == Access::read) return;
  if (const int stack = scheduler.stacks().owner(at); stack >= 0) {
    if (stack != scheduler.current_stack()) report(Kind::foreign_stack, nullptr, address, size, pc, site);
    return;
  }
  constexpr uintptr_t kNullPage = 1 << 16;
  report(at < kNullPage ? Kind::null_pointer : Kind::wild_pointer, nullptr, address, size, pc, site);
  scheduler.stop();
}

void trace(const Region& region, const void* address, size_t size, Access access, uintptr_t pc) {
  if (checks.trace.size() == checks.trace.capacity()) return;
  const bool device = region.space() == Space::device;
  const size_t offset = device ? static_cast<size_t>(static_cast<const char*>(address) - region.begin)
                               : memory.offset(address);
  checks.trace.push_back({relative(pc), static_cast<uint32_t>(offset), static_cast<uint32_t>(scheduler.current()),
                          static_cast<uint16_t>(size), access != Access::read, device, region.buffer});
}

void count(const Region& region, size_t offset, size_t size, Access access, uint32_t pc) {
  const bool write = access != Access::read;
  const auto bytes = static_cast<uint32_t>(std::min<size_t>(size, 16));
  ++counters.accesses;
  if (access == Access::atomic) ++counters.atomics;
  if (region.space() == Space::threadgroup) {
    (write ? counters.threadgroup_write_bytes : counters.threadgroup_read_bytes) += size;
    traffic.threadgroup(pc, scheduler.lane(), scheduler.segment(), offset, bytes, write);
  } else if (region.role != Role::constant) {
    (write ? counters.device_write_bytes : counters.device_read_bytes) += size;
    traffic.device(pc, scheduler.lane(), scheduler.segment(), offset, bytes, write);
  }
}

// Cell by cell: is the value defined, and does it race?
[[gnu::always_inline]] inline void check_cells(const Region& region, size_t at, size_t size, Access access,
                                               uintptr_t pc, Site site) {
  const uint64_t self = scheduler.identity(region.space());
  const size_t width = size_t{1} << region.shift;
  const uint32_t place = relative(pc), group = static_cast<uint32_t>(scheduler.threadgroup()) + 1;
  while (size > 0) {
    const size_t first = at & (width - 1), bytes = std::min(size, width - first);
    const auto mask = static_cast<uint8_t>(((1u << bytes) - 1) << first);
    Cell& cell = region.cells[at >> region.shift];
    if (region.role == Role::threadgroup && cell.stamp != group) {
      cell = Cell{};
      cell.stamp = group;
    }
    const char* address = region.begin + at;
    if (access == Access::read && (cell.defined & mask) != mask) [[unlikely]]
      report(region.role == Role::threadgroup ? Kind::uninitialized_threadgroup_read : Kind::uninitialized_device_read,
             &region, address, bytes, pc, site);
    const Race race = access == Access::read    ? note_read(cell, self, mask, place)
                      : access == Access::write ? note_write(cell, self, mask, place)
                                                : note_update(cell, self, mask);
    if (race.other) [[unlikely]] report_race(race.kind, region, address, bytes, pc, site, race.other, race.other_pc);
    at += bytes;
    size -= bytes;
  }
}

}  // namespace

void check_access(const void* address, size_t size, Access access, uintptr_t pc, Site site) {
  const size_t offset = memory.offset(address);
  if (!memory.contains(address)) {
    check_outside(address, size, access, pc, site);
    return;
  }
  scheduler.spend_step(relative(pc), site);
  const Region& region = memory.region_at(offset);
  const auto at = static_cast<size_t>(static_cast<const char*>(address) - region.begin);
  if (at + size > region.size || at > region.size) [[unlikely]] {
    report(access == Access::read ? Kind::out_of_bounds_read : Kind::out_of_bounds_write, memory.nearest(offset),
           address, size, pc, site);
    return;
  }
  count(region, offset, size, access, pc ? relative(pc) : site.line);
  if (checks.traced_threadgroup == scheduler.threadgroup()) [[unlikely]] trace(region, address, size, access, pc);
  if (region.cells) {
    check_cells(region, at, size, access, pc, site);
  } else if (access != Access::read) [[unlikely]] {
    report(Kind::write_to_input, &region, address, size, pc, site);
  }
}

extern "C" {

void* msl_rt_threadgroup_variable(const void* key, size_t bytes, size_t element, const char* name, Site site) {
  if (char* variable = memory.threadgroup_variable(key, bytes, element, name)) return variable;
  if (Finding* finding = findings.add(Kind::threadgroup_memory, 0, site)) {
    finding->size = memory.threadgroup_bytes();
    finding->set_name(name);
  }
  scheduler.stop();
}

void msl_rt_atomic(const volatile void* address, size_t bytes, Site site) {
  if (checks.on) check_access(const_cast<const void*>(address), bytes, Access::atomic, 0, site);
}

void msl_rt_read(const void* address, size_t bytes, Site site) {
  if (checks.on) check_access(address, bytes, Access::read, 0, site);
}

void msl_rt_write(void* address, size_t bytes, Site site) {
  if (checks.on) check_access(address, bytes, Access::write, 0, site);
}

}

}  // namespace msl
