// Where threads wait for each other: threadgroup barriers, and the rendezvous behind every simdgroup function.
#include <bit>
#include <cstdio>

#include "counters.h"
#include "findings.h"
#include "scheduler.h"

namespace msl {

namespace {

constexpr unsigned kMemDevice = 1, kMemThreadgroup = 2;  // as in metal::mem_flags

uint32_t lane_bit(int thread) { return 1u << (static_cast<uint32_t>(thread) % kSimdWidth); }

// Runs once for all lanes. Each slot holds the flags that a lane gave.
void end_phase(void* const* slots, uint32_t active) {
  unsigned flags = 0;
  for (uint32_t lane = 0; lane < kSimdWidth; ++lane)
    if (active >> lane & 1) flags |= *static_cast<const unsigned*>(slots[lane]);
  ++counters.simdgroup_barriers;
  scheduler.end_simdgroup_phase(flags);
}

}  // namespace

void Scheduler::barrier(unsigned flags, Site site) {
  spend_step(0, site);
  Thread& me = threads_[current_];
  me.state = State::barrier;
  me.flags = flags;
  me.site = site;
  --simdgroups_[current_ / static_cast<int>(kSimdWidth)].live;
  wait();
}

// All threads are done or at a barrier. False where they are not all at the same one.
bool Scheduler::release_barrier() {
  int first = -1, other = -1;
  for (int t = 0; t < count_; ++t) {
    if (threads_[t].state != State::barrier) continue;
    if (first < 0) first = t;
    const Site a = threads_[t].site, b = threads_[first].site;
    if (a.line != b.line || a.file != b.file) other = t;
  }
  if (done_ > 0 || other >= 0) {
    report_divergence(first, other < 0, other);
    stopped_ = true;
    return false;
  }
  ++counters.barriers;
  const unsigned flags = threads_[first].flags;
  if (flags & kMemThreadgroup) ++phase_[static_cast<int>(Space::threadgroup)];
  if (flags & kMemDevice) ++phase_[static_cast<int>(Space::device)];
  for (int g = 0; g < groups_; ++g) simdgroups_[g].live = end_of(g) - first_of(g);
  for (int t = 0; t < count_; ++t) threads_[t].state = State::ready;
  return true;
}

void Scheduler::report_divergence(int waiting, bool same_place, int other) {
  const Site site = threads_[waiting].site;
  current_ = waiting;
  Finding* finding = findings.add(same_place ? Kind::barrier_after_return : Kind::divergent_barrier, 0, site);
  if (!finding) return;
  if (same_place) {
    std::snprintf(finding->note, sizeof finding->note, "%d of %d threads returned before it", done_, count_);
  } else {
    finding->other_thread = other;
    finding->other_threadgroup = threadgroup();
    std::snprintf(finding->note, sizeof finding->note, "thread %d waits at line %u", other, threads_[other].site.line);
  }
}

void Scheduler::simd(SimdOperation operation, void* slot, Site site) {
  spend_step(0, site);
  const int group = current_ / static_cast<int>(kSimdWidth);
  Thread& me = threads_[current_];
  me.operation = operation;
  me.slot = slot;
  me.site = site;
  if (simdgroups_[group].waiting + 1 == simdgroups_[group].live) {  // the last lane: are all at the same call?
    uint32_t mask = lane_bit(current_);
    bool together = true;
    for (int t = first_of(group); t < end_of(group); ++t) {
      if (threads_[t].state != State::simd) continue;
      mask |= lane_bit(t);
      together = together && same_call(threads_[t], me);
    }
    if (together) {
      operate(group, mask, me);
      return;
    }
  }
  me.state = State::simd;
  ++simdgroups_[group].waiting;
  wait();
}

bool Scheduler::same_call(const Thread& a, const Thread& b) const {
  return a.operation == b.operation && a.site.line == b.site.line && a.site.file == b.site.file;
}

// No lane can go on: let those at the earliest line have their operation without the others.
void Scheduler::resolve(int group) {
  const Thread* first = nullptr;
  for (int t = first_of(group); t < end_of(group); ++t)
    if (threads_[t].state == State::simd && (!first || threads_[t].site.line < first->site.line)) first = &threads_[t];
  uint32_t mask = 0;
  for (int t = first_of(group); t < end_of(group); ++t)
    if (threads_[t].state == State::simd && same_call(threads_[t], *first)) mask |= lane_bit(t);
  operate(group, mask, *first);
}

void Scheduler::operate(int group, uint32_t mask, const Thread& caller) {
  if (std::popcount(mask) != end_of(group) - first_of(group)) report_partial(group, mask, caller.site);
  void* slots[kSimdWidth];
  for (uint32_t lane = 0; lane < kSimdWidth; ++lane)
    slots[lane] = mask >> lane & 1 ? threads_[static_cast<uint32_t>(first_of(group)) + lane].slot : nullptr;
  ++counters.simd_operations;
  ++segment_;
  operating_ = group;
  caller.operation(slots, mask);
  for (int t = first_of(group); t < end_of(group); ++t) {
    if (!(mask & lane_bit(t)) || threads_[t].state != State::simd) continue;
    threads_[t].state = State::ready;
    --simdgroups_[group].waiting;
  }
  if (current_ >= 0) refresh_identity();
}

void Scheduler::report_partial(int group, uint32_t mask, Site site) {
  if (Finding* finding = findings.add(Kind::partial_simdgroup, 0, site)) {
    finding->thread = first_of(group) + std::countr_zero(mask);
    finding->offset = mask;
    std::snprintf(finding->note, sizeof finding->note, "%d of %d lanes (mask 0x%08x)", std::popcount(mask),
                  end_of(group) - first_of(group), mask);
  }
}

void Scheduler::end_simdgroup_phase(unsigned flags) {
  Simdgroup& own = simdgroups_[operating_];
  if (flags & kMemThreadgroup) ++own.phase[static_cast<int>(Space::threadgroup)];
  if (flags & kMemDevice) ++own.phase[static_cast<int>(Space::device)];
}

extern "C" {

uint32_t msl_rt_lane() { return scheduler.lane(); }

void msl_rt_barrier(unsigned flags, Site site) { scheduler.barrier(flags, site); }

void msl_rt_simd(SimdOperation operation, void* slot, Site site) { scheduler.simd(operation, slot, site); }

void msl_rt_simdgroup_barrier(unsigned flags, Site site) { scheduler.simd(end_phase, &flags, site); }

}

}  // namespace msl
