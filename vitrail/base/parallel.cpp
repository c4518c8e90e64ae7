#include "vitrail/base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "vitrail/base/error.h"

#if VITRAIL_OPENMP
#include <omp.h>
#endif

namespace vitrail {
namespace {

constexpr int kMostThreads = 1024;  // far more than helps; libgomp ends the process when it cannot start a thread

thread_local int thread_count = 0;  // 0: not set, use all
thread_local bool inside_loop = false;

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

// Of the pieces that threw, the lowest one's exception.
class FirstFailure {
 public:
  void keep(int64_t piece, std::exception_ptr exception) {
    const std::lock_guard lock(mutex_);
    if (exception_ && piece_ < piece) return;
    piece_ = piece;
    exception_ = std::move(exception);
  }
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::mutex mutex_;
  int64_t piece_ = 0;
  std::exception_ptr exception_;
};

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
  const int64_t length = end - begin;
  if (length <= 0) return;
  const int64_t most = length / std::max<int64_t>(grain, 1);
  const int64_t pieces = inside_loop ? 1 : std::min<int64_t>(num_threads(), most);
  if (pieces <= 1) {
    body(begin, end);
    return;
  }
  FirstFailure failure;
  auto run = [&](int64_t piece) {
    inside_loop = true;
    try {
      body(begin + length * piece / pieces, begin + length * (piece + 1) / pieces);
    } catch (...) {
      failure.keep(piece, std::current_exception());
    }
    inside_loop = false;
  };
#if VITRAIL_OPENMP
  const int threads = static_cast<int>(pieces);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int64_t piece = 0; piece < pieces; ++piece) run(piece);
#else
  std::vector<std::thread> team;
  try {
    for (int64_t piece = 1; piece < pieces; ++piece) team.emplace_back(run, piece);
  } catch (const std::system_error&) {
    // No more threads are to be had: the pieces that are left run here.
  }
  for (int64_t piece = std::ssize(team) + 1; piece < pieces; ++piece) run(piece);
  run(0);
  for (std::thread& member : team) member.join();
#endif
  failure.rethrow();
}

}  // namespace vitrail
