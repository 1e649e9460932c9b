#include "scheduler.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "context.h"
#include "counters.h"
#include "findings.h"
#include "shuffle.h"
#include "traffic.h"

namespace msl {

Scheduler scheduler;
Counters counters;

void Scheduler::prepare(Entry entry, const ThreadContext& context, int order, uint64_t steps) {
  entry_ = entry;
  context_ = context;
  order_seed_ = order;
  steps_left_ = static_cast<int64_t>(steps);
  stopped_ = false;
  current_ = -1;
  count_ = 0;
}

bool Scheduler::run_threadgroup(uint32_t index, Uint3 position, Uint3 size) {
  group_ = index;
  context_.threadgroup_position_in_grid = position;
  context_.threads_per_threadgroup = size;
  ++counters.threadgroups;
  arrange(size.x * size.y * size.z);
  stacks_.reset();
  run_threads();
  current_ = -1;
  return !stopped_;
}

// Fresh threads in the order in which they are to run.
void Scheduler::arrange(uint32_t threads) {
  const bool again = static_cast<int>(threads) == count_ && order_seed_ <= 0;
  count_ = static_cast<int>(threads);
  groups_ = (count_ + static_cast<int>(kSimdWidth) - 1) / static_cast<int>(kSimdWidth);
  done_ = 0;
  phase_[0] = phase_[1] = 0;
  finished_stack_ = -1;
  for (int t = 0; t < count_; ++t) threads_[t].state = State::fresh;
  for (int g = 0; g < groups_; ++g) simdgroups_[g] = {{0, 0}, end_of(g) - first_of(g), 0};
  if (again) return;
  std::iota(lane_order_, lane_order_ + count_, 0);
  std::iota(group_order_, group_order_ + groups_, 0);
  Shuffle shuffle(order_seed_, group_);
  for (int g = 0; g < groups_; ++g) shuffle(lane_order_ + first_of(g), lane_order_ + end_of(g));
  shuffle(group_order_, group_order_ + groups_);
  for (int p = 0; p < count_; ++p) place_[lane_order_[p]] = p;
}

int Scheduler::end_of(int group) const { return std::min(first_of(group) + static_cast<int>(kSimdWidth), count_); }

void Scheduler::run_threads() {
  do {
    for (int g = 0; g < groups_; ++g) {
      ++segment_;
      run_simdgroup(group_order_[g]);
      if (stopped_) return;
    }
  } while (done_ < count_ && release_barrier());
}

// Until every lane is done or at a threadgroup barrier.
void Scheduler::run_simdgroup(int group) {
  while (!stopped_) {
    const int thread = first_runnable(group);
    if (thread >= 0) {
      enter(-1, thread);
      if (finished_stack_ >= 0) stacks_.give_back(std::exchange(finished_stack_, -1));
    } else if (simdgroups_[group].waiting > 0) {
      resolve(group);
    } else {
      return;
    }
  }
}

int Scheduler::first_runnable(int group) const {
  for (int p = first_of(group); p < end_of(group); ++p)
    if (runnable(lane_order_[p])) return lane_order_[p];
  return -1;
}

// A lane of the current thread's simdgroup, if possible one that comes after it.
int Scheduler::next_runnable() const {
  const int group = current_ / static_cast<int>(kSimdWidth);
  for (int p = place_[current_] + 1; p < end_of(group); ++p)
    if (runnable(lane_order_[p])) return lane_order_[p];
  return first_runnable(group);
}

void Scheduler::set_current(int thread) {
  current_ = thread;
  refresh_identity();
  traffic.next_thread();
}

void Scheduler::refresh_identity() {
  const Simdgroup& own = simdgroups_[current_ / static_cast<int>(kSimdWidth)];
  for (int space = 0; space < 2; ++space)
    identity_[space] = (uint64_t{group_} + 1) << Identity::kGroupShift |
                       uint64_t{phase_[space] & 0xFFFFu} << Identity::kPhaseShift |
                       uint64_t{own.phase[space] & 0x3FFFu} << Identity::kSimdPhaseShift |
                       static_cast<uint32_t>(current_);
}

// Go on with thread `to`; from the scheduler itself where `from` is -1.
void Scheduler::enter(int from, int to) {
  Thread& next = threads_[to];
  if (next.state == State::fresh) {
    next.stack = stacks_.take();
    next.stack_pointer = make_context(stacks_.top(next.stack), thread_main);
    next.state = State::ready;
  }
  set_current(to);
  msl_switch_context(from < 0 ? &main_stack_pointer_ : &threads_[from].stack_pointer, next.stack_pointer);
}

void Scheduler::leave_thread() { msl_switch_context(&threads_[current_].stack_pointer, main_stack_pointer_); }

void Scheduler::wait() {
  const int next = next_runnable();
  if (next >= 0) {
    enter(current_, next);
  } else {
    leave_thread();
  }
}

void Scheduler::stop() {
  stopped_ = true;
  leave_thread();
  std::abort();  // a stopped launch never comes back here
}

void Scheduler::out_of_steps(uint64_t pc, Site site) {
  findings.add(Kind::step_limit, pc, site);
  stop();
}

// The bottom of every thread's stack. A thread that never waits hands its stack straight to the next lane.
void Scheduler::thread_main() {
  Scheduler& self = scheduler;
  for (;;) {
    self.threads_[self.current_].state = State::ready;
    self.fill_context(self.current_);
    self.entry_(self.context_);
    const int group = self.current_ / static_cast<int>(kSimdWidth);
    Thread& me = self.threads_[self.current_];
    me.state = State::done;
    ++self.done_;
    --self.simdgroups_[group].live;
    const int place = self.place_[self.current_] + 1;
    const int next = place < self.end_of(group) ? self.lane_order_[place] : -1;
    if (next < 0 || self.threads_[next].state != State::fresh) {
      self.finished_stack_ = me.stack;
      self.leave_thread();
      std::abort();  // a thread that is done never runs again
    }
    self.threads_[next].stack = me.stack;
    self.set_current(next);
  }
}

void Scheduler::fill_context(int thread) {
  const auto t = static_cast<uint32_t>(thread);
  const Uint3 size = context_.threads_per_threadgroup, full = context_.dispatch_threads_per_threadgroup;
  const Uint3 at{t % size.x, t / size.x % size.y, t / (size.x * size.y)};
  const Uint3 group = context_.threadgroup_position_in_grid;
  context_.thread_index_in_threadgroup = t;
  context_.thread_position_in_threadgroup = at;
  context_.thread_position_in_grid = {group.x * full.x + at.x, group.y * full.y + at.y, group.z * full.z + at.z};
}

}  // namespace msl
