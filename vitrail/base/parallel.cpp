// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/parallel.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "vitrail/base/cgroup_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/base/thread_team_internal.h"

namespace vitrail {
namespace {

constexpr int kMaxThreads = 1024;

thread_local int thread_count = 0;  // 0: not set, use all
thread_local bool inside_loop = false;

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
  return std::min<int64_t>(num_threads(), length / std::max<int64_t>(grain, 1));
}

// One for all kinds of loops.
ThreadTeam& team_of_this_thread() {
  thread_local ThreadTeam team;
  return team;
}

// Calls task(i) for all i < count on the team of the calling thread.  `task` must not throw.
template <class Task>
void run_on_threads(int64_t count, const Task& task) {
  team_of_this_thread().run(count, [&task](int64_t i) {
    inside_loop = true;
    task(i);
    inside_loop = false;
  });
}

// A process that fork() makes while another thread computes has the locked mutex, but no thread that unlocks it. It
// gets a new one.
std::recursive_mutex& compute_mutex() {
  static std::recursive_mutex mutex;
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] { new (&mutex) std::recursive_mutex; });
  static_cast<void>(registered);
  return mutex;
}

// The number of cores in the affinity mask.
int cores_of_affinity() {
  cpu_set_t set;
  const bool known = sched_getaffinity(0, sizeof(set), &set) == 0;  // fails with more processors than the set can hold
  return known ? CPU_COUNT(&set) : static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int available_threads() {
  static const int count =
      std::clamp(std::min(cores_of_affinity(), cgroup_cpus().value_or(kMaxThreads)), 1, kMaxThreads);
  return count;
}

int num_threads() {
  if (inside_loop) return 1;
  return thread_count > 0 ? thread_count : available_threads();
}

ThreadCount::ThreadCount(int n) : previous_(thread_count) {
  if (n < 1 || n > kMaxThreads) throw Error("threads", str("a count from 1 to ", kMaxThreads), str(n));
  thread_count = n;
}

ThreadCount::~ThreadCount() { thread_count = previous_; }

ComputeTeam::ComputeTeam(int threads) : threads_(threads) {
  if (threads > 1) lock_ = std::unique_lock(compute_mutex());
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
  const int64_t units = ceil_div(length, unit), grain_units = std::max<int64_t>(1, grain / unit);
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

}  // namespace vitrail
