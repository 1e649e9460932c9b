#include "traffic.h"

#include <algorithm>
#include <cstring>

#include "counters.h"
#include "reserve.h"

namespace msl {

Traffic traffic;

void Traffic::begin_launch() {
  std::memset(places_, 0, sizeof places_);
  place_count_ = 0;
  next_thread();
}

void Traffic::device(uint32_t pc, uint32_t lane, uint32_t segment, uint64_t offset, uint32_t size, bool write) {
  constexpr int kLineBits = 7;
  bool fresh = false;
  Request* request = join(uint64_t{pc} << 1, lane, segment, offset, size, write, fresh);
  if (fresh) ++(write ? counters.device_write_requests : counters.device_read_requests);
  if (!request) return;
  const auto first = static_cast<uint32_t>(offset >> kLineBits);
  const auto last = static_cast<uint32_t>((offset + size - 1) >> kLineBits);
  for (uint32_t line = first; line <= last; ++line)
    if (insert(*request, line)) ++(write ? counters.device_write_lines : counters.device_read_lines);
}

void Traffic::threadgroup(uint32_t pc, uint32_t lane, uint32_t segment, uint64_t offset, uint32_t size, bool write) {
  bool fresh = false;
  Request* request = join(uint64_t{pc} << 1 | 1, lane, segment, offset, size, write, fresh);
  if (fresh) ++counters.threadgroup_requests;
  if (!request) return;
  const auto first = static_cast<uint32_t>(offset >> 2), last = static_cast<uint32_t>((offset + size - 1) >> 2);
  for (uint32_t word = first; word <= last; ++word) {
    const int before = request->worst_bank - (request->count + 31) / 32;
    if (!insert(*request, word)) continue;
    const uint8_t load = ++request->banks[word % 32];
    if (load > request->worst_bank) request->worst_bank = load;
    counters.bank_conflicts += static_cast<uint64_t>(request->worst_bank - (request->count + 31) / 32 - before);
  }
}

// The request that this access is a part of; nullptr where it adds nothing that is not counted yet.
Traffic::Request* Traffic::join(uint64_t key, uint32_t lane, uint32_t segment, uint64_t offset, uint32_t size,
                                bool write, bool& fresh) {
  const uint64_t block = (offset >> 4) << 1 | write;
  const uint32_t bytes = ((1u << size) - 1) << (offset & 15);
  const bool device = !(key & 1);
  for (Recent& recent : recent_) {
    if (recent.block != block || recent.segment != segment || (recent.bytes & bytes)) continue;
    recent.bytes |= bytes;
    return device ? nullptr : recent.request;  // a block lies in one line
  }
  Place& place = find(key);
  if (place.lane != lane || place.segment != segment) {
    place.lane = lane;
    place.segment = segment;
    place.round = 0;
  }
  Request& request = place.requests[place.round++ % kMostRounds];
  if (request.segment != segment) {
    request.segment = segment;
    request.count = request.far_count = request.worst_bank = 0;
    request.near[0] = request.near[1] = 0;
    if (!device) std::memset(request.banks, 0, sizeof request.banks);
    fresh = true;
  }
  recent_[oldest_++ % 4] = {block, bytes, segment, &request};
  return &request;
}

Traffic::Place& Traffic::find(uint64_t key) {
  const uint64_t tag = key + 1;  // 0 is free
  uint32_t at = static_cast<uint32_t>(tag * 0x9E3779B97F4A7C15u >> 32) % kMostPlaces;
  for (uint32_t tries = 0; places_[at].key != tag; at = (at + 1) % kMostPlaces, ++tries) {
    if (places_[at].key != 0 && tries < kMostPlaces) continue;
    if (tries == kMostPlaces) break;  // a program of more places than that shares them
    const uint32_t number = place_count_++;
    if (!pools_[number]) {
      const size_t bytes = kMostRounds * sizeof(Request);
      pools_[number] = reinterpret_cast<Request*>(reserve_memory(bytes, bytes).begin);
    }
    places_[at] = {tag, 0, kSimdWidth, 0, pools_[number]};
    break;
  }
  return places_[at];
}

// Whether `item` is new to the request.
bool Traffic::insert(Request& request, uint32_t item) {
  if (request.count == 0) request.first = item;
  const uint32_t from_first = item - request.first + Request::kNear / 2;
  if (from_first < Request::kNear) {
    uint64_t& word = request.near[from_first / 64];
    const uint64_t bit = uint64_t{1} << from_first % 64;
    if (word & bit) return false;
    word |= bit;
  } else {
    uint32_t* const end = request.far + request.far_count;
    if (std::find(request.far, end, item) != end || request.far_count == Request::kMostFar) return false;
    request.far[request.far_count++] = item;
  }
  ++request.count;
  return true;
}

}  // namespace msl
