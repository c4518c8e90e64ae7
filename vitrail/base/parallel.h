// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parallel loops, on threads that each calling thread has of its own and that sleep when there is no loop.
//
// A loop that starts inside another parallel loop, or on a thread whose thread count is 1, runs serially on the calling
// thread.
#include <cstdint>
#include <mutex>

#include "vitrail/base/function_ref.h"

namespace vitrail {

// Returns the number of cores that this process may use, at least 1 and at most 1024: those of its affinity mask, and
// no more than the CPU quota of its cgroup allows (rounded up).
int available_threads();

// Returns the number of threads that the loops of the calling thread use: available_threads() unless a ThreadCount is
// alive, and 1 inside a loop.
int num_threads();

// Sets the thread count of the calling thread and restores the previous one on destruction.  Other threads are not
// affected.  Throws Error for a count outside 1 to 1024.
class ThreadCount {
 public:
  explicit ThreadCount(int n);
  ~ThreadCount();
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int previous_;
};

// Holds the process-wide compute lock and sets the thread count.  Only one multi-threaded computation runs at a time;
// other callers wait, so that two of them do not compete for the cores.  With one thread no lock is taken.  A thread
// that holds the lock may take it again.
class ComputeTeam {
 public:
  explicit ComputeTeam(int threads);

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  ThreadCount threads_;
};

// The body of a parallel loop: processes the elements of [first, last).
using RangeBody = FunctionRef<void(int64_t first, int64_t last)>;

// Calls body(first, last) on disjoint ranges that cover [begin, end), one range per thread, in parallel.  Each range
// has at least `grain` elements, unless [begin, end) itself is shorter.  The partition depends only on the arguments
// and the thread count.  If calls throw, the exception of the lowest range is rethrown after all calls have ended.
void parallel_for(int64_t begin, int64_t end, int64_t grain, RangeBody body);

// parallel_for with work stealing, for long loops on cores of unequal speed (hybrid processors, a core shared with
// another process).  Each thread starts with its own share and takes half of what is left of it at a time, at least
// `grain` elements; a thread that has finished steals from the others.  The partition varies between runs, so the
// results of `body` must not depend on where a range begins or ends.
void parallel_for_balanced(int64_t begin, int64_t end, int64_t grain, RangeBody body);

}  // namespace vitrail
