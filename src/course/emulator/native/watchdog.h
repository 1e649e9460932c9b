// Ends a launch that does not end by itself, also when it touches no memory and calls nothing.
#pragma once
#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace msl {

// While it lives, and once the thread that made it has used `seconds` of CPU time, it is sent kSignal again and again.
class Watchdog {
 public:
  static constexpr int kSignal = SIGURG;  // ignored wherever nobody handles it

  explicit Watchdog(double seconds);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch();
  double used() const;

  const pthread_t watched_;
  double limit_;
  bool done_ = false;
  std::mutex mutex_;
  std::condition_variable woken_;
  std::thread thread_;
};

}  // namespace msl
