#include "probes.h"

#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "pages.h"
#include "qmm.h"
#include "qmv.h"
#include "ragged.h"
#include "threads.h"

namespace tiny_llm {

namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

std::vector<float> written_rows(const mx::array& x, const PackedArrays& w, int group_size, const std::string& kernel,
                                int64_t begin, int64_t end) {
  const PackedWeights weights = packed_weights({w.words, w.scales, w.biases}, 0, group_size);
  const int64_t tokens = x.shape(0), columns = weights.columns, stride = weights.rows + 3;
  std::vector<float> y((tokens + 2) * stride, std::numeric_limits<float>::quiet_NaN());
  InterleavedActivations<float> interleaved(tokens, columns, group_size);
  TiledActivations<float> tiled(tokens, columns, group_size);
  for (int64_t m = 0; m < tokens; ++m) {
    const float* row = x.data<float>() + m * columns;
    interleaved.set_row(m, row);
    tiled.set_row(m, row);
    if (kernel == "scalar") {
      qmv_scalar(row, weights, begin, end, y.data() + m * stride);
    }
  }
  if (kernel == "vector") {
    qmv_rows(interleaved, weights, begin, end, y.data(), stride);
  }
  if (kernel == "blocked") {
    qmm_rows(tiled, weights, begin, end, y.data(), stride);
  }
  return y;
}

std::vector<int> parallel_visits(int64_t n, int64_t grain, int depth) {
  std::vector<std::atomic<int>> visits(n);
  const std::function<void(int)> run = [&](int level) {
    parallel_for(n, grain, [&](int64_t begin, int64_t end) {
      if (begin < 0 || end > n || begin >= end || end - begin > grain) {
        throw std::out_of_range("piece [" + std::to_string(begin) + ", " + std::to_string(end) + ") of n " +
                                std::to_string(n) + " with grain " + std::to_string(grain));
      }
      for (int64_t i = begin; i < end; ++i) {
        visits[i].fetch_add(1);
      }
      if (level > 1 && begin == 0) {
        run(level - 1);
      }
    });
  };
  run(depth);
  return {visits.begin(), visits.end()};
}

void parallel_failure(int64_t n, int64_t grain, int64_t bad) {
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    if (begin <= bad && bad < end) {
      throw std::runtime_error("index " + std::to_string(bad));
    }
  });
}

int parallel_meeting(int64_t n, double seconds) {
  const int expected = ThreadPool::shared().threads();
  const Clock::time_point deadline = after(seconds);
  std::mutex mutex;
  std::set<std::thread::id> present;
  parallel_for(n, 1, [&](int64_t, int64_t) {
    const auto met = [&] {
      const std::lock_guard lock(mutex);
      present.insert(std::this_thread::get_id());
      return static_cast<int>(present.size()) >= expected;
    };
    while (!met() && Clock::now() < deadline) {
      std::this_thread::yield();
    }
  });
  return static_cast<int>(present.size());
}

void parallel_failure_elsewhere(double seconds) {
  const std::thread::id caller = std::this_thread::get_id();
  const Clock::time_point deadline = after(seconds);
  std::atomic<bool> thrown{false};
  parallel_for(4 * ThreadPool::shared().threads(), 1, [&](int64_t, int64_t) {
    if (std::this_thread::get_id() != caller) {
      thrown = true;
      throw std::runtime_error("another thread");
    }
    while (!thrown && Clock::now() < deadline) {
      std::this_thread::yield();
    }
  });
}

std::vector<int64_t> page_offsets(const std::vector<int32_t>& table, int64_t page_size, int64_t page_stride,
                                  int64_t row_stride, int64_t first, int64_t count) {
  std::vector<int64_t> offsets(count);
  page_rows({table.data(), page_size, page_stride, row_stride}, first, count, offsets.data());
  return offsets;
}

std::vector<std::vector<int64_t>> batch_pieces(const std::vector<int32_t>& bounds, const std::vector<int32_t>& lengths,
                                               int64_t kv_heads, int64_t threads) {
  std::vector<std::vector<int64_t>> numbers;
  const Ragged batch = {bounds.data(), lengths.data(), static_cast<int64_t>(lengths.size())};
  for (const Piece& piece : ragged_pieces(batch, kv_heads, threads)) {
    numbers.push_back({piece.request, piece.query, piece.queries, piece.visible, piece.first_key, piece.last_key});
  }
  return numbers;
}

}  // namespace tiny_llm
