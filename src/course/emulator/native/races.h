// When two accesses to one element race, and what a cell must remember to tell.
#pragma once
#include <cstdint>

#include "findings.h"
#include "memory.h"

namespace msl {

inline uint64_t identity_group(uint64_t identity) { return identity >> Identity::kGroupShift; }
inline uint64_t identity_phase(uint64_t identity) { return identity >> Identity::kPhaseShift; }  // and group
inline uint64_t identity_simd_phase(uint64_t identity) {
  return identity >> Identity::kSimdPhaseShift & ((1 << Identity::kSimdPhaseBits) - 1);
}
inline bool identity_atomic(uint64_t identity) { return identity >> Identity::kAtomicShift & 1; }
inline uint64_t identity_thread(uint64_t identity) { return identity & ((1 << Identity::kThreadBits) - 1); }
inline uint64_t identity_simdgroup(uint64_t identity) { return identity_thread(identity) / kSimdWidth; }

// Whether nothing orders the two: no barrier between them, not one thread. Threadgroups are never ordered.
inline bool concurrent(uint64_t other, uint64_t self) {
  if (identity_group(other) != identity_group(self)) return true;
  if (identity_phase(other) != identity_phase(self) || identity_thread(other) == identity_thread(self)) return false;
  return identity_simdgroup(other) != identity_simdgroup(self) ||
         identity_simd_phase(other) == identity_simd_phase(self);
}

struct Race {
  Kind kind{};
  uint64_t other = 0;  // the other thread's identity; 0: no race
  uint32_t other_pc = 0;
};

// The writer that races with `self`, if any. Two atomic accesses never race.
inline bool races_with_writer(const Cell& cell, uint64_t self, uint8_t mask) {
  if (!(cell.written & mask) || (cell.writer == self && !(cell.flags & cell_flag::many_writers))) return false;
  if (identity_atomic(cell.writer) && identity_atomic(self)) return false;
  if (concurrent(cell.writer, self)) return true;
  if (cell.flags & cell_flag::many_writer_groups) return true;
  return (cell.flags & cell_flag::many_writers) && identity_phase(cell.writer) == identity_phase(self);
}

inline Race race_with_reader(const Cell& cell, uint64_t self, uint8_t mask) {
  if (!(cell.read & mask) || !cell.reader) return {};
  if (concurrent(cell.reader, self)) return {Kind::race_read_write, cell.reader, cell.reader_pc};
  if (cell.other_reader && concurrent(cell.other_reader, self))
    return {Kind::race_read_write, cell.other_reader, cell.other_reader_pc};
  const bool same_simd_phase = identity_phase(cell.reader) == identity_phase(self) &&
                               identity_simd_phase(cell.reader) == identity_simd_phase(self);
  if ((cell.flags & cell_flag::many_readers) && same_simd_phase)  // a lane that is not known by name
    return {Kind::race_read_write, cell.reader, cell.reader_pc};
  return {};
}

inline Race note_read(Cell& cell, uint64_t self, uint8_t mask, uint32_t pc) {
  Race race;
  if (races_with_writer(cell, self, mask)) race = {Kind::race_write_read, cell.writer, cell.writer_pc};
  if (cell.reader == self) {
    cell.read |= mask;
    return race;
  }
  if (cell.reader == 0) {
    cell.read = mask;
  } else if (identity_phase(cell.reader) == identity_phase(self) &&
             identity_simdgroup(cell.reader) == identity_simdgroup(self)) {
    cell.read |= mask;
    if (identity_simd_phase(cell.reader) == identity_simd_phase(self)) {
      cell.flags |= cell_flag::many_readers;  // the first reader stands for its simdgroup
      if (!cell.other_reader) {               // and another one is known by name
        cell.other_reader = self;
        cell.other_reader_pc = pc;
      }
      return race;
    }
  } else if (concurrent(cell.reader, self)) {
    cell.read |= mask;
    cell.other_reader = cell.reader;
    cell.other_reader_pc = cell.reader_pc;
  } else {
    cell.read = cell.other_reader && concurrent(cell.other_reader, self) ? cell.read | mask : mask;
  }
  cell.flags &= static_cast<uint8_t>(~cell_flag::many_readers);
  cell.reader = self;
  cell.reader_pc = pc;
  return race;
}

inline Race note_write(Cell& cell, uint64_t self, uint8_t mask, uint32_t pc) {
  Race race = race_with_reader(cell, self, mask);
  if (races_with_writer(cell, self, mask)) race = {Kind::race_write_write, cell.writer, cell.writer_pc};
  uint8_t flags = cell.flags & cell_flag::many_readers;
  if (cell.writer && identity_atomic(cell.writer) && identity_atomic(self)) {
    flags |= cell.flags & cell_flag::many_writer_groups;
    if (identity_group(cell.writer) != identity_group(self)) flags |= cell_flag::many_writer_groups;
    if (identity_phase(cell.writer) == identity_phase(self)) {
      flags |= cell.flags & cell_flag::many_writers;
      if (identity_thread(cell.writer) != identity_thread(self)) flags |= cell_flag::many_writers;
    }
  }
  cell.written = cell.writer == self ? cell.written | mask : mask;
  cell.flags = flags;
  cell.writer = self;
  cell.writer_pc = pc;
  cell.defined |= mask;
  return race;
}

}  // namespace msl
