// Memory traffic as a GPU would see it: the lanes of a simdgroup that reach the same place in the program for the n-th
// time access memory together. Counted per such request: how many 128-byte lines it touches, and for threadgroup memory
// how many words fall into the same of 32 banks. Line and bank sizes are assumptions of this model.
#pragma once
#include <cstdint>

#include "abi.h"

namespace msl {

// One access of a thread, kept for access maps. The layout is that of the dtype in runtime.py.
struct TracedAccess {
  uint64_t pc;
  uint32_t offset, thread;
  uint16_t size;
  uint8_t write, device;
  int32_t buffer;
};
static_assert(sizeof(TracedAccess) == 24);

class Traffic {
 public:
  void begin_launch();
  void next_thread() {  // another lane runs
    for (Recent& recent : recent_) recent.block = 0;
  }
  // Offsets are into the arena. `segment` changes when the simdgroup has met.
  void device(uint32_t pc, uint32_t lane, uint32_t segment, uint64_t offset, uint32_t size, bool write);
  void threadgroup(uint32_t pc, uint32_t lane, uint32_t segment, uint64_t offset, uint32_t size, bool write);

 private:
  static constexpr uint32_t kMostRounds = 1 << 16, kMostPlaces = 1024;

  // One request: the lines, or the words, that the lanes so far have touched. Those near the first one are bits.
  struct Request {
    static constexpr uint32_t kNear = 128, kMostFar = 128;
    uint32_t segment, first;
    uint64_t near[kNear / 64];
    uint8_t count, far_count, worst_bank;
    uint8_t banks[32];
    uint32_t far[kMostFar];
  };
  // A place in the program, and how often the lane that runs has come here since the simdgroup met.
  struct Place {
    uint64_t key;
    uint32_t segment, lane, round;
    Request* requests;
  };
  // The last few 16-byte blocks of the lane that runs: the parts of one vector are one request.
  struct Recent {
    uint64_t block;
    uint32_t bytes, segment;
    Request* request;
  };

  Request* join(uint64_t key, uint32_t lane, uint32_t segment, uint64_t offset, uint32_t size, bool write, bool& fresh);
  Place& find(uint64_t key);
  static bool insert(Request& request, uint32_t item);

  Place places_[kMostPlaces] = {};
  uint32_t place_count_ = 0;
  Request* pools_[kMostPlaces] = {};
  Recent recent_[4] = {};
  uint32_t oldest_ = 0;
};

extern Traffic traffic;

}  // namespace msl
