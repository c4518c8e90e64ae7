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

constexpr int kMostThreads = 1024;  // far more than helps; libgomp ends the process when it cannot start a thread

thread_local int thread_count = 0;  // 0: not set, use all
thread_local bool inside_loop = false;
thread_local SpinThreadPool* awake = nullptr;  // that this thread leads

int openmp_count() {
#if VITRAIL_OPENMP
  return omp_get_max_threads();
#else
  return 0;
#endif
}

void set_openmp_count(int n) {
#if VITRAIL_OPENMP
  omp_set_num_threads(n);  // this thread's own setting: oneDNN, called from here, reads it
#else
  static_cast<void>(n);
#endif
}

// Of the parts that threw, the exception of the one that begins first.
class FirstFailure {
 public:
  void watch(RangeBody body, int64_t first, int64_t last) {
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

// What nobody has taken yet of a thread's piece.  Both ends are in one word, so that taking is one exchange.
class alignas(64) Stretch {
 public:
  struct Part {
    int64_t first, last;
  };
  void reset(int64_t first, int64_t last) { left_.store(word(first, last), std::memory_order_relaxed); }
  std::optional<Part> take_front(int64_t least) {
    return take([least](Part left) { return Part{left.first, left.first + part_of(left, least)}; });
  }
  std::optional<Part> take_back(int64_t least) {
    return take([least](Part left) { return Part{left.last - part_of(left, least), left.last}; });
  }

 private:
  static uint64_t word(int64_t first, int64_t last) {
    return static_cast<uint64_t>(first) << 32 | static_cast<uint64_t>(last);
  }
  // Half of it, or all where either part would be short.
  static int64_t part_of(Part left, int64_t least) {
    const int64_t length = left.last - left.first;
    return length < 2 * least ? length : (length + 1) / 2;
  }
  template <class Choice>
  std::optional<Part> take(const Choice& choice) {
    uint64_t now = left_.load(std::memory_order_relaxed);
    for (;;) {
      const Part left{static_cast<int64_t>(now >> 32), static_cast<int64_t>(now & 0xffffffff)};
      if (left.first == left.last) return std::nullopt;
      const Part part = choice(left);
      const uint64_t then = part.first == left.first ? word(part.last, left.last) : word(left.first, part.first);
      if (left_.compare_exchange_weak(now, then, std::memory_order_relaxed)) return part;
    }
  }
  std::atomic<uint64_t> left_ = 0;
};

// How many threads are worth it.
int64_t pieces_of(int64_t length, int64_t grain) {
  return inside_loop ? 1 : std::min<int64_t>(num_threads(), length / std::max<int64_t>(grain, 1));
}

// Calls run(piece), which does not throw, for all pieces, each on a thread of its own where there are enough.
template <class Run>
void on_team(int64_t pieces, const Run& run) {
  if (awake && pieces <= awake->threads()) {
    inside_loop = true;  // as it is in the team's other threads
    awake->run(pieces, run);
    inside_loop = false;
    return;
  }
  auto one = [&run](int64_t piece) {
    inside_loop = true;
    run(piece);
    inside_loop = false;
  };
#if VITRAIL_OPENMP
  const int threads = static_cast<int>(pieces);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int64_t piece = 0; piece < pieces; ++piece) one(piece);
#else
  std::vector<std::thread> team;
  try {
    for (int64_t piece = 1; piece < pieces; ++piece) team.emplace_back(one, piece);
  } catch (const std::system_error&) {
    // No more threads are to be had: the pieces that are left run here, after the first, which with_spin_thread_pool()
    // works in: the others would wait for it.
  }
  const int64_t begun = std::ssize(team) + 1;
  one(0);
  for (int64_t piece = begun; piece < pieces; ++piece) one(piece);
  for (std::thread& member : team) member.join();
#endif
}

}  // namespace

int available_threads() {
  static const int count = [] {
    cpu_set_t set;
    const bool known = sched_getaffinity(0, sizeof(set), &set) == 0;  // not with more processors than the set can hold
    return std::clamp(known ? CPU_COUNT(&set) : static_cast<int>(std::thread::hardware_concurrency()), 1, kMostThreads);
  }();
  return count;
}

int num_threads() { return thread_count > 0 ? thread_count : available_threads(); }

ThreadCount::ThreadCount(int n) : previous_(thread_count), previous_openmp_(openmp_count()) {
  if (n < 1 || n > kMostThreads) throw Error("threads", str("a count from 1 to ", kMostThreads), str(n));
  thread_count = n;
  set_openmp_count(n);
}

ThreadCount::~ThreadCount() {
  thread_count = previous_;
  set_openmp_count(previous_openmp_);
}

ComputeTeam::ComputeTeam(int threads) : threads_(threads) {
  static std::recursive_mutex team;
  if (threads > 1) turn_ = std::unique_lock(team);
}

void parallel_for(int64_t begin, int64_t end, int64_t grain, RangeBody body) {
  const int64_t length = end - begin, pieces = pieces_of(length, grain);
  if (pieces <= 1) return length > 0 ? body(begin, end) : void();
  FirstFailure failure;
  on_team(pieces, [&](int64_t piece) {
    failure.watch(body, begin + length * piece / pieces, begin + length * (piece + 1) / pieces);
  });
  failure.rethrow();
}

void parallel_for_balanced(int64_t begin, int64_t end, int64_t grain, RangeBody body) {
  const int64_t length = end - begin, pieces = pieces_of(length, grain);
  if (pieces <= 1) return length > 0 ? body(begin, end) : void();
  const int64_t unit = 1 + (length >> 31);  // so that a count of them has 32 bits
  const int64_t units = (length + unit - 1) / unit, least = std::max<int64_t>(1, grain / unit);
  thread_local std::vector<Stretch> memory;  // kept: a loop allocates nothing
  std::vector<Stretch>& stretches = memory;  // the caller's, in all threads
  if (std::ssize(stretches) < pieces) stretches = std::vector<Stretch>(static_cast<size_t>(pieces));
  for (int64_t p = 0; p < pieces; ++p) stretches[p].reset(units * p / pieces, units * (p + 1) / pieces);
  FirstFailure failure;
  on_team(pieces, [&](int64_t piece) {
    for (int64_t p = 0; p < pieces; ++p) {
      Stretch& stretch = stretches[(piece + p) % pieces];
      while (const auto part = p == 0 ? stretch.take_front(least) : stretch.take_back(least)) {
        failure.watch(body, begin + part->first * unit, std::min(end, begin + part->last * unit));
      }
    }
  });
  failure.rethrow();
}

void with_spin_thread_pool(WorkRef work) {
  const int64_t threads = pieces_of(kMostThreads, 1);
  if (threads <= 1 || awake) return work();
  thread_local SpinThreadPool memory;  // kept: a team allocates nothing
  SpinThreadPool& team = memory;       // the caller's, in all threads
  team.begin(static_cast<int>(threads));
  std::exception_ptr failure;
  on_team(threads, [&](int64_t piece) {
    if (piece > 0) return team.serve(static_cast<int>(piece));
    awake = &team;
    inside_loop = false;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    inside_loop = true;
    awake = nullptr;
    team.dismiss();
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace vitrail
