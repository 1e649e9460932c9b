// A pool of threads, and the loop that shares its work among them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace tiny_llm {

// Threads that wait for work. There is one pool for the whole process.
class ThreadPool {
 public:
  // The pool, started at the first call: TINY_LLM_THREADS threads, or one per processor, the caller's included.
  static ThreadPool& shared();

  // How many threads work at most, the calling one included.
  int threads() const {
    return threads_;
  }

  // Runs `body` on the calling thread and, at the same time, on those threads of the pool that are free, and returns
  // when all of them have left it. A thread that wakes too late takes no part, so `body` must do all the work that
  // there is, on any number of threads from one. It must not throw.
  // While the pool is taken, by an outer call or by another stream, `body` runs on the calling thread alone.
  void run(const std::function<void()>& body);

 private:
  explicit ThreadPool(int threads);
  void work();

  const int threads_;
  std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
  const std::function<void()>* body_ = nullptr;
  // Which call it is (bits 8 and up), whether threads may still join it (bit 7), and how many are in it (bits 0-6).
  std::atomic<uint32_t> state_{0};
};

// Calls body(begin, end) for pieces that cover 0 .. n - 1 exactly once, on all threads of the pool, and returns when
// all calls have returned.
//
// grain: at least 1. No piece is longer, and all but the last are as long. Pieces are handed out in order, to whichever
// thread is free. Without work (n <= 0) body is not called; with one piece it is called on the calling thread.
// The first exception that body throws is thrown again here, after all threads have left; pieces not yet begun are
// then left out. Calls from inside body are allowed.
void parallel_for(int64_t n, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body);

}  // namespace tiny_llm
