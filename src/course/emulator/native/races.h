// When two accesses to one element race, and what a cell must remember to tell.
#pragma once
#include <cstdint>

#include "findings.h"
#include "memory.h"

namespace msl {

inline uint64_t identity_group(uint64_t identity) { return identity >> Identity::kGroupShift; }
inline uint64_t identity_phase(uint64_t identity) { return identity >> Identity::kPhaseShift; }  // and group
inline uint64_t identity_simd_phase(uint64_t identity) { return identity >> Identity::kSimdPhaseShift; }  // and those
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

// One of the party that may run at the same time as `self`; 0 for none.
inline uint64_t opponent(const Party& party, bool many, uint64_t self) {
  if (!party.last) return 0;
  if (concurrent(party.last, self)) return party.last;
  if (party.other && concurrent(party.other, self)) return party.other;
  // A lane that is not known by name.
  return many && identity_simd_phase(party.last) == identity_simd_phase(self) ? party.last : 0;
}

enum class Joined { last, other, neither };  // which place the newcomer took

inline Joined join(Party& party, bool& many, uint64_t self) {
  if (party.last == self) return Joined::neither;
  const bool same_simdgroup = party.last && identity_phase(party.last) == identity_phase(self) &&
                              identity_simdgroup(party.last) == identity_simdgroup(self);
  if (same_simdgroup && identity_simd_phase(party.last) == identity_simd_phase(self)) {
    many = true;  // the first lane stands for its simdgroup, and another one is known by name
    if (party.other) return Joined::neither;
    party.other = self;
    return Joined::other;
  }
  // One of another threadgroup stays: it races whatever barriers are still to come.
  const bool has_foreigner = party.other && identity_group(party.other) != identity_group(self) &&
                             identity_group(party.last) == identity_group(self);
  if (party.last && !same_simdgroup && !has_foreigner && concurrent(party.last, self)) party.other = party.last;
  many = false;
  party.last = self;
  return Joined::last;
}

inline Race race_with_writer(const Cell& cell, uint64_t self, uint8_t mask, Kind kind) {
  if (!(cell.written & mask) || cell.writer == self || !concurrent(cell.writer, self)) return {};
  return {kind, cell.writer, cell.writer_pc};
}

inline Race race_with_updaters(const Cell& cell, uint64_t self, uint8_t mask, Kind kind) {
  if (!(cell.updated & mask)) return {};
  return {kind, opponent(cell.updaters, cell.many_updaters, self), 0};
}

inline Race race_with_readers(const Cell& cell, uint64_t self, uint8_t mask) {
  if (!(cell.read & mask)) return {};
  const uint64_t reader = opponent(cell.readers, cell.many_readers, self);
  return {Kind::race_read_write, reader, reader == cell.readers.last ? cell.reader_pc : cell.other_reader_pc};
}

// The first of the races there are.
inline Race first_race(Race a, Race b) { return a.other ? a : b; }

inline Race note_read(Cell& cell, uint64_t self, uint8_t mask, uint32_t pc) {
  const Race race = first_race(race_with_writer(cell, self, mask, Kind::race_write_read),
                               race_with_updaters(cell, self, mask, Kind::race_write_read));
  const uint32_t last_pc = cell.reader_pc;
  const uint64_t last = cell.readers.last;
  const Joined joined = join(cell.readers, cell.many_readers, self);
  if (joined == Joined::last) {
    if (cell.readers.other == last) cell.other_reader_pc = last_pc;
    cell.reader_pc = pc;
  } else if (joined == Joined::other) {
    cell.other_reader_pc = pc;
  }
  cell.read |= mask;
  return race;
}

inline Race note_write(Cell& cell, uint64_t self, uint8_t mask, uint32_t pc) {
  const Race race = first_race(first_race(race_with_writer(cell, self, mask, Kind::race_write_write),
                                          race_with_updaters(cell, self, mask, Kind::race_write_write)),
                               race_with_readers(cell, self, mask));
  cell.written = cell.writer == self ? cell.written | mask : mask;
  cell.writer = self;
  cell.writer_pc = pc;
  cell.defined |= mask;
  return race;
}

// By an atomic function, which reads and writes.
inline Race note_update(Cell& cell, uint64_t self, uint8_t mask) {
  const Race race = first_race(race_with_writer(cell, self, mask, Kind::race_write_write),
                               race_with_readers(cell, self, mask));
  join(cell.updaters, cell.many_updaters, self);
  cell.updated |= mask;
  cell.defined |= mask;
  return race;
}

}  // namespace msl
