// The order in which threads run. A kernel that gives other results in another order depends on luck.
#pragma once
#include <algorithm>
#include <cstdint>

namespace msl {

// Leaves a range as it is (seed 0), turns it round (negative), or shuffles it (positive; the same on every machine).
class Shuffle {
 public:
  Shuffle(int seed, uint64_t stream) : seed_(seed), state_(uint64_t(seed) * 0x9E3779B97F4A7C15u + stream) {}

  template <class Item>
  void operator()(Item* begin, Item* end) {
    if (seed_ < 0) std::reverse(begin, end);
    if (seed_ <= 0) return;
    for (auto left = static_cast<uint64_t>(end - begin); left > 1; --left)
      std::swap(begin[left - 1], begin[next() % left]);
  }

 private:
  uint64_t next() {  // splitmix64
    uint64_t word = state_ += 0x9E3779B97F4A7C15u;
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9u;
    word = (word ^ word >> 27) * 0x94D049BB133111EBu;
    return word ^ word >> 31;
  }

  int seed_;
  uint64_t state_;
};

}  // namespace msl
