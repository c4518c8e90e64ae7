// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parallel loops: the one place that knows OpenMP (or std::thread, when built with VITRAIL_PARALLEL=threads).
//
// One compute team per process.  A loop started from inside another parallel loop, or by a thread that has asked for
// one thread, runs on the calling thread alone.
#include <cstdint>
#include <mutex>

namespace vitrail {

// Cores this process may run on (its affinity mask), at least 1.
int available_threads();

// Threads that the loops of the calling thread use; all available ones until set.
int num_threads();

// Sets the calling thread's count for the life of the object and restores it afterwards; other threads and the
// program around the library are not affected.  A count below 1 or above 1024 is an Error.
class ThreadCount {
 public:
  explicit ThreadCount(int n);
  ~ThreadCount();
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int previous_;
  int previous_openmp_;
};

// The right to run with several threads: there is one compute team in the process, and callers queue for it, so that
// two of them do not fight over the cores.  With one thread nobody is waited for, and a caller that has the team gets
// it again.  Sets the thread count as ThreadCount does.
class ComputeTeam {
 public:
  explicit ComputeTeam(int threads);

 private:
  std::unique_lock<std::recursive_mutex> turn_;
  ThreadCount threads_;
};

// What a loop does with a piece: refers to any callable (int64_t first, int64_t last), which must outlive the loop.
// Unlike a std::function it allocates nothing.
class RangeBody {
 public:
  template <class Body>
  RangeBody(const Body& body)  // NOLINT(google-explicit-constructor): stands for the callable
      : body_(&body),
        call_([](const void* self, int64_t first, int64_t last) { (*static_cast<const Body*>(self))(first, last); }) {}
  void operator()(int64_t first, int64_t last) const { call_(body_, first, last); }

 private:
  const void* body_;
  void (*call_)(const void*, int64_t, int64_t);
};

// Calls body(first, last) on disjoint pieces that cover [begin, end), each at least `grain` long (or the
// whole range, when that is shorter).  The pieces are a fixed division by thread count: the same count gives the same
// pieces.  An exception thrown by a piece is rethrown here after all have ended (the lowest piece's, if several threw).
void parallel_for(int64_t begin, int64_t end, int64_t grain, RangeBody body);

// The same for long loops on cores that are not equally fast (of two kinds, or with a busy neighbour): a thread works
// off its piece in parts, half of what is left at a time but at least `grain`, and one that is done takes parts of what
// others have left.  Who does what differs from run to run, so what body computes must not depend on where a part
// begins or ends.
void parallel_for_balanced(int64_t begin, int64_t end, int64_t grain, RangeBody body);

// What a team does: refers to any callable (), as RangeBody does.
class WorkRef {
 public:
  template <class Work>
  WorkRef(const Work& work)  // NOLINT(google-explicit-constructor): stands for the callable
      : work_(&work), call_([](const void* self) { (*static_cast<const Work*>(self))(); }) {}
  void operator()() const { call_(work_); }

 private:
  const void* work_;
  void (*call_)(const void*);
};

// work(), whose parallel loops run on threads that wait for the next one awake: a loop then costs less than half,
// 0.26 µs for 0.65 on two near cores.  Loops are divided as they are without, and give the same results.  Not for work
// in which a library has threads of its own: they would find the cores taken.
void with_spin_thread_pool(WorkRef work);

}  // namespace vitrail
