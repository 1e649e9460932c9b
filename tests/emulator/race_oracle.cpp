// Random histories of accesses to one element: does a cell, which remembers three of them, find a race exactly when a
// comparison with every earlier access does?
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "races.h"

using namespace msl;

struct Event {
  uint64_t identity;
  bool write, atomic;
};

int main(int, char** arguments) {
  constexpr int kGroups = 3, kSimdgroups = 2, kLanes = 3;
  std::mt19937 random(static_cast<unsigned>(std::atoi(arguments[1])));
  const auto below = [&](unsigned n) { return random() % n; };
  int races = 0, silent = 0;
  for (int history = 0; history < 200'000; ++history) {
    uint64_t phase[kGroups] = {}, simd_phase[kGroups][kSimdgroups] = {};
    const unsigned groups = 1 + below(kGroups), barriers = 1 + below(4), writes = 1 + below(4), atomics = below(4);
    std::vector<Event> before;
    Cell cell{};
    bool raced = false;
    for (int step = 0; step < 12 && !raced; ++step) {
      const unsigned group = below(groups), simdgroup = below(kSimdgroups), lane = below(kLanes);
      if (below(6) < barriers) {
        ++(below(2) ? phase[group] : simd_phase[group][simdgroup]);
        continue;
      }
      const bool atomic = below(4) < atomics, write = atomic || below(8) < writes;
      const uint64_t self = (uint64_t{group} + 1) << Identity::kGroupShift | phase[group] << Identity::kPhaseShift |
                            simd_phase[group][simdgroup] << Identity::kSimdPhaseShift |
                            (simdgroup * kSimdWidth + lane);
      bool expected = false;
      for (const Event& other : before) {
        const bool matters = (other.write || write) && !(other.atomic && atomic);
        expected = expected || (matters && concurrent(other.identity, self));
      }
      const Race race = atomic  ? note_update(cell, self, 0xF)
                        : write ? note_write(cell, self, 0xF, 1)
                                : note_read(cell, self, 0xF, 1);
      if (expected != (race.other != 0)) {
        std::printf("history %d, step %d: a race is %s but %s\n", history, step, expected ? "there" : "not there",
                    race.other ? "reported" : "not reported");
        return 1;
      }
      raced = expected;
      before.push_back({self, write, atomic});
    }
    ++(raced ? races : silent);
  }
  std::printf("%d %d\n", races, silent);
  return 0;
}
