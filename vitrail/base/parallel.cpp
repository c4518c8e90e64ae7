// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/base/spin_thread_pool_internal.h"

#if VITRAIL_OPENMP
#include <omp.h>
#endif

namespace vitrail {
namespace {

constexpr int kMaxThreads = 1024;  // libgomp ends the process when it cannot start a thread

thread_local int thread_count = 0;  // 0: not set, use all
thread_local bool inside_loop = false;
thread_local SpinThreadPool* active_pool = nullptr;  // the pool that this thread leads

int openmp_count() {
#if VITRAIL_OPENMP
  return omp_get_max_threads();
#else
  return 0;
#endif
}

void set_openmp_count(int n) {
#if VITRAIL_OPENMP
  omp_set_num_threads(n);  // for the calling thread only; oneDNN reads it when this thread calls it
#else
  static_cast<void>(n);
#endif
}

// Collects the exceptions of concurrent calls and keeps the one of the lowest range.
class ExceptionCollector {
 public:
  void call(RangeBody body, int64_t first, int64_t last) {
    try {
      body(first, last);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (exception_ && first_ < first) return;
      first_ = first;
      exception_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::mutex mutex_;
  int64_t first_ = 0;
  std::exception_ptr exception_;
};

// The elements of a thread's share that no thread has taken yet.  Its owner takes from the front, other threads steal
// from the back.  Both ends are packed into one 64-bit word, so that taking is one compare-and-swap.
class alignas(64) WorkRange {
 public:
  struct Range {
    int64_t first, last;
  };
  void reset(int64_t first, int64_t last) { remaining_.store(pack(first, last), std::memory_order_relaxed); }
  std::optional<Range> take_front(int64_t grain) {
    return take([grain](Range all) { return Range{all.first, all.first + length_to_take(all, grain)}; });
  }
  std::optional<Range> take_back(int64_t grain) {
    return take([grain](Range all) { return Range{all.last - length_to_take(all, grain), all.last}; });
  }

 private:
  static uint64_t pack(int64_t first, int64_t last) {
    return static_cast<uint64_t>(first) << 32 | static_cast<uint64_t>(last);
  }
  // Half of the range, or all of it if a half is shorter than the grain.
  static int64_t length_to_take(Range all, int64_t grain) {
    const int64_t length = all.last - all.first;
    return length < 2 * grain ? length : (length + 1) / 2;
  }
  template <class Choice>
  std::optional<Range> take(const Choice& choice) {
    uint64_t current = remaining_.load(std::memory_order_relaxed);
    for (;;) {
      const Range all{static_cast<int64_t>(current >> 32), static_cast<int64_t>(current & 0xffffffff)};
      if (all.first == all.last) return std::nullopt;
      const Range taken = choice(all);
      const uint64_t remaining = taken.first == all.first ? pack(taken.last, all.last) : pack(all.first, taken.first);
      if (remaining_.compare_exchange_weak(current, remaining, std::memory_order_relaxed)) return taken;
    }
  }
  std::atomic<uint64_t> remaining_ = 0;
};

// The number of threads, and of shares, for a loop of this length; at most 1: run it serially.
int64_t num_shares(int64_t length, int64_t grain) {
  return inside_loop ? 1 : std::min<int64_t>(num_threads(), length / std::max<int64_t>(grain, 1));
}

// Calls task(i) for all i < count, each on its own thread as far as the system provides threads.  `task` must not
// throw.
template <class Task>
void run_on_threads(int64_t count, const Task& task) {
  if (active_pool && count <= active_pool->threads()) {
    inside_loop = true;  // the workers have it set as well
    active_pool->run(count, task);
    inside_loop = false;
    return;
  }
  auto run_one = [&task](int64_t i) {
    inside_loop = true;
    task(i);
    inside_loop = false;
  };
#if VITRAIL_OPENMP
  const int threads = static_cast<int>(count);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int64_t i = 0; i < count; ++i) run_one(i);
#else
  std::vector<std::thread> threads;
  try {
    for (int64_t i = 1; i < count; ++i) threads.emplace_back(run_one, i);
  } catch (const std::system_error&) {
    // The system provides no more threads: the remaining tasks run below, after task 0.  The order matters for
    // with_spin_thread_pool(), whose other tasks return only when task 0 has ended.
  }
  const int64_t num_started = std::ssize(threads) + 1;
  run_one(0);
  for (int64_t i = num_started; i < count; ++i) run_one(i);
  for (std::thread& thread : threads) thread.join();
#endif
}

}  // namespace

int available_threads() {
  static const int count = [] {
    cpu_set_t set;
    const bool known =
        sched_getaffinity(0, sizeof(set), &set) == 0;  // fails with more processors than the set can hold
    return std::clamp(known ? CPU_COUNT(&set) : static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
  }();
  return count;
}

int num_threads() { return thread_count > 0 ? thread_count : available_threads(); }

ThreadCount::ThreadCount(int n) : previous_(thread_count), previous_openmp_(openmp_count()) {
  if (n < 1 || n > kMaxThreads) throw Error("threads", str("a count from 1 to ", kMaxThreads), str(n));
  thread_count = n;
  set_openmp_count(n);
}

ThreadCount::~ThreadCount() {
  thread_count = previous_;
  set_openmp_count(previous_openmp_);
}

ComputeTeam::ComputeTeam(int threads) : threads_(threads) {
  static std::recursive_mutex mutex;
  if (threads > 1) lock_ = std::unique_lock(mutex);
}

void parallel_for(int64_t begin, int64_t end, int64_t grain, RangeBody body) {
  const int64_t length = end - begin, shares = num_shares(length, grain);
  if (shares <= 1) return length > 0 ? body(begin, end) : void();
  ExceptionCollector exceptions;
  run_on_threads(shares, [&](int64_t i) {
    exceptions.call(body, begin + length * i / shares, begin + length * (i + 1) / shares);
  });
  exceptions.rethrow();
}

void parallel_for_balanced(int64_t begin, int64_t end, int64_t grain, RangeBody body) {
  const int64_t length = end - begin, shares = num_shares(length, grain);
  if (shares <= 1) return length > 0 ? body(begin, end) : void();
  const int64_t unit = 1 + (length >> 31);  // elements per unit, so that the number of units fits 32 bits
  const int64_t units = (length + unit - 1) / unit, grain_units = std::max<int64_t>(1, grain / unit);
  thread_local std::vector<WorkRange> memory;  // reused, so that a loop does not allocate
  std::vector<WorkRange>& ranges = memory;     // a reference to the caller's vector, for all threads
  if (std::ssize(ranges) < shares) ranges = std::vector<WorkRange>(static_cast<size_t>(shares));
  for (int64_t i = 0; i < shares; ++i) ranges[i].reset(units * i / shares, units * (i + 1) / shares);
  ExceptionCollector exceptions;
  run_on_threads(shares, [&](int64_t thread) {
    for (int64_t offset = 0; offset < shares; ++offset) {  // its own share first, then those of the others
      WorkRange& range = ranges[(thread + offset) % shares];
      while (const auto taken = offset == 0 ? range.take_front(grain_units) : range.take_back(grain_units)) {
        exceptions.call(body, begin + taken->first * unit, std::min(end, begin + taken->last * unit));
      }
    }
  });
  exceptions.rethrow();
}

void with_spin_thread_pool(FunctionRef<void()> work) {
  const int64_t threads = num_shares(kMaxThreads, 1);
  if (threads <= 1 || active_pool) return work();
  thread_local SpinThreadPool memory;  // reused, so that starting the pool does not allocate
  SpinThreadPool& pool = memory;       // a reference to the caller's pool, for all threads
  pool.start(static_cast<int>(threads));
  std::exception_ptr failure;
  run_on_threads(threads, [&](int64_t thread) {
    if (thread > 0) return pool.worker_loop(static_cast<int>(thread));
    active_pool = &pool;
    inside_loop = false;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    inside_loop = true;
    active_pool = nullptr;
    pool.stop();
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace vitrail
