// Runs the threads of one threadgroup on one CPU thread. Each has a stack of its own and runs until it must wait: at a
// threadgroup barrier, or at a simdgroup function until the other lanes are there too. A simdgroup goes on as long as
// any of its lanes can; then comes the next one.
#pragma once
#include <cstdint>

#include "abi.h"
#include "stacks.h"

namespace msl {

// What decides whether two accesses may happen at the same time, in one word.
struct Identity {
  static constexpr int kThreadBits = 10, kSimdPhaseBits = 14, kPhaseBits = 16;
  static constexpr int kSimdPhaseShift = kThreadBits;
  static constexpr int kPhaseShift = kSimdPhaseShift + kSimdPhaseBits, kGroupShift = kPhaseShift + kPhaseBits;
};

enum class Space { threadgroup, device };
enum class Order : int { forward = 0, reversed = -1 };  // any positive number seeds a shuffle

class Scheduler {
 public:
  // `steps`: how many accesses and waits the launch may take.
  void prepare(Entry entry, const ThreadContext& context, int order, uint64_t steps);
  // Run the threadgroup at `position`; false when the launch is to stop.
  bool run_threadgroup(uint32_t index, Uint3 position, Uint3 size);
  ThreadContext& context() { return context_; }

  // Called by threads.
  void barrier(unsigned flags, Site site);
  void simd(SimdOperation operation, void* slot, Site site);
  void end_simdgroup_phase(unsigned flags);  // from within the operation of a simdgroup barrier
  [[noreturn]] void stop();
  void spend_step(uint64_t pc, Site site) {
    if (--steps_left_ < 0) [[unlikely]] out_of_steps(pc, site);
  }

  // Called by signal handlers.
  void abandon() { stopped_ = true; }
  void hurry() { steps_left_ = 0; }  // stop at the next access or wait

  int current() const { return current_; }  // -1 between threads
  uint32_t lane() const { return static_cast<uint32_t>(current_) % kSimdWidth; }
  int threadgroup() const { return static_cast<int>(group_); }
  uint32_t segment() const { return segment_; }  // changes whenever a simdgroup has met
  uint64_t identity(Space space) const { return identity_[static_cast<int>(space)]; }
  int current_stack() const { return threads_[current_].stack; }
  const Stacks& stacks() const { return stacks_; }

 private:
  enum class State : uint8_t { fresh, ready, barrier, simd, done };
  struct Thread {
    void* stack_pointer;
    SimdOperation operation;
    void* slot;
    Site site;
    unsigned flags;
    int stack;
    State state;
  };
  struct Simdgroup {
    uint32_t phase[2];  // by space: simdgroup barriers so far
    int live;           // lanes neither at a threadgroup barrier nor done
    int waiting;        // lanes at a simdgroup function
  };

  static void thread_main();
  void run_threads();
  void fill_context(int thread);
  void arrange(uint32_t threads);
  void run_simdgroup(int group);
  void leave_thread();
  void enter(int from, int to);
  void wait();
  void set_current(int thread);
  void refresh_identity();
  int first_runnable(int group) const;
  int next_runnable() const;
  bool runnable(int thread) const { return threads_[thread].state <= State::ready; }
  bool same_call(const Thread& a, const Thread& b) const;
  void resolve(int group);
  void operate(int group, uint32_t mask, const Thread& caller);
  bool release_barrier();
  void report_divergence(int waiting, bool same_place, int other);
  void report_partial(int group, uint32_t mask, Site site);
  [[noreturn]] void out_of_steps(uint64_t pc, Site site);
  int first_of(int group) const { return group * static_cast<int>(kSimdWidth); }
  int end_of(int group) const;

  int64_t steps_left_ = 0;
  uint64_t identity_[2] = {};
  int current_ = -1;
  uint32_t segment_ = 0, group_ = 0, phase_[2] = {};
  bool stopped_ = false;
  int count_ = 0, groups_ = 0, done_ = 0, order_seed_ = 0;
  int operating_ = 0;  // the simdgroup whose operation runs
  void* main_stack_pointer_ = nullptr;
  int finished_stack_ = -1;
  Entry entry_ = nullptr;
  ThreadContext context_;
  Stacks stacks_;
  Simdgroup simdgroups_[kMaxThreads / kSimdWidth];
  int lane_order_[kMaxThreads], place_[kMaxThreads], group_order_[kMaxThreads / kSimdWidth];
  Thread threads_[kMaxThreads];
};

extern Scheduler scheduler;

}  // namespace msl
