#include "watchdog.h"

#include <time.h>

#include <chrono>

namespace msl {

Watchdog::Watchdog(double seconds) : watched_(pthread_self()), limit_(used() + seconds), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  woken_.notify_one();
  thread_.join();
}

void Watchdog::watch() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // the process's signals are other threads' business
  std::unique_lock lock(mutex_);
  while (!woken_.wait_for(lock, std::chrono::milliseconds(20), [this] { return done_; }))
    if (used() > limit_) pthread_kill(watched_, kSignal);
}

// CPU time, not the clock on the wall: on a busy machine a good kernel must not run out of time.
double Watchdog::used() const {
  timespec now{};
#ifdef __linux__
  clockid_t clock;
  if (pthread_getcpuclockid(watched_, &clock) != 0) return 0;
  clock_gettime(clock, &now);
#else
  clock_gettime(CLOCK_MONOTONIC, &now);
#endif
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace msl
