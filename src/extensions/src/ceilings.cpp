#include "ceilings.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "dot.h"

namespace tiny_llm {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The threads are this file's own, so that the ceilings can be measured before `parallel_for` is written.
void on_threads(int threads, const std::function<void(int)>& body) {
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) {
    others.emplace_back(body, i);
  }
  body(0);
  for (std::thread& other : others) {
    other.join();
  }
}

// Sums whole blocks of 16 vectors, with as many independent sums.
simd::Float read_all(const float* data, size_t n) {
  constexpr int kVectors = 16;
  simd::Float sums[kVectors] = {};
  for (size_t i = 0; i + kVectors * simd::kLanes <= n; i += kVectors * simd::kLanes) {
    for (int v = 0; v < kVectors; ++v) {
      sums[v] += simd::load(data + i + v * simd::kLanes);
    }
  }
  simd::Float total = {};
  for (const simd::Float& sum : sums) {
    total += sum;
  }
  return total;
}

// Writing a result here keeps the compiler from leaving out the work that made it.
std::atomic<float> kept;

}  // namespace

double read_bandwidth(int megabytes, int threads) {
  if (megabytes < 1 || threads < 1) {
    throw std::invalid_argument("read_bandwidth of " + std::to_string(megabytes) + " MB with " +
                                std::to_string(threads) + " threads: both must be at least 1");
  }
  constexpr int kPasses = 7;
  const size_t n = static_cast<size_t>(megabytes) * 1'000'000 / sizeof(float);
  const std::vector<float> data(n, 1.0f);
  const size_t share = n / threads;
  std::vector<std::atomic<int>> arrived(kPasses);
  std::vector<double> times(kPasses * threads);
  on_threads(threads, [&](int thread) {
    for (int pass = 0; pass < kPasses; ++pass) {
      arrived[pass].fetch_add(1);
      while (arrived[pass].load() < threads) {
        std::this_thread::yield();
      }
      const auto start = Clock::now();
      kept.store(simd::sum(read_all(data.data() + thread * share, share)));
      times[pass * threads + thread] = seconds_since(start);
    }
  });
  double best = 0.0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double slowest = *std::max_element(&times[pass * threads], &times[pass * threads] + threads);
    best = std::max(best, static_cast<double>(share * threads * sizeof(float)) / slowest);
  }
  return best;
}

double peak_flops(int threads, double seconds) {
  if (threads < 1 || !(seconds > 0.0)) {
    throw std::invalid_argument("peak_flops with " + std::to_string(threads) + " threads for " +
                                std::to_string(seconds) + " s: needs at least 1 thread and more than 0 s");
  }
  constexpr int kSums = 12, kRounds = 4096;
  std::vector<double> rates(threads);
  on_threads(threads, [&](int thread) {
    simd::Float sums[kSums] = {};
    const simd::Float factor = simd::set(0.999f), addend = simd::set(0.001f);
    int64_t rounds = 0;
    const auto start = Clock::now();
    double elapsed = 0.0;
    while (elapsed < seconds) {
      for (int i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
        for (int s = 0; s < kSums; ++s) {
          sums[s] = simd::fma(sums[s], factor, addend);
        }
      }
      rounds += kRounds;
      elapsed = seconds_since(start);
    }
    for (const simd::Float& sum : sums) {
      kept.store(simd::sum(sum));
    }
    rates[thread] = static_cast<double>(rounds) * kSums * simd::kLanes * 2 / elapsed;
  });
  double total = 0.0;
  for (double rate : rates) {
    total += rate;
  }
  return total;
}

std::string instruction_set() {
#if TINY_LLM_AVX512
  return std::is_same_v<DotElement<Bf16>, Bf16> ? "AVX-512 + BF16" : "AVX-512";
#elif TINY_LLM_AVX2
  return "AVX2";
#elif defined(__ARM_NEON)
  return "NEON";
#else
  return "generic";
#endif
}

}  // namespace tiny_llm
