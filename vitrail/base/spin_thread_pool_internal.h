// SPDX-License-Identifier: Apache-2.0
#pragma once
// A pool of threads that spin while they wait for work.  One loop costs two cache-line transfers between cores, where
// an OpenMP loop costs about eight.  Only base uses it; see with_spin_thread_pool() in parallel.h.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "vitrail/base/aligned_memory_internal.h"

namespace vitrail {

// Thread 0 is the leader: it starts the pool, runs loops and stops the pool.  Threads 1, 2, … are workers: they run
// worker_loop().  The pool creates no threads itself.
class SpinThreadPool {
 public:
  // Prepares the pool for `threads` threads, the leader included.  No worker may be inside worker_loop() meanwhile.
  void start(int threads);
  int threads() const { return threads_; }

  // The main function of worker 1, 2, …: runs the tasks that the leader assigns, until stop().
  void worker_loop(int worker);

  // For the leader: calls task(i) for all i < count ≤ threads(), and returns when all calls have ended.  Worker i runs
  // task i; the leader runs task 0 and the tasks of workers that have not arrived yet.  `task` must not throw.
  template <class Task>
  void run(int64_t count, const Task& task) {
    for (int64_t i = 1; i < count; ++i) {
      slots_[i].assigned = slots_[i].arrived.load(std::memory_order_acquire);
      if (slots_[i].assigned) {
        assign(
            slots_[i], [](const void* argument, int64_t index) { (*static_cast<const Task*>(argument))(index); },
            &task);
      }
    }
    task(0);
    for (int64_t i = 1; i < count; ++i) {
      if (!slots_[i].assigned) task(i);
    }
    for (int64_t i = 1; i < count; ++i) wait_for(slots_[i]);
  }

  // For the leader: makes all workers leave worker_loop().
  void stop();

 private:
  using Function = void (*)(const void* argument, int64_t index);

  // How the leader and one worker communicate.  Each writes to cache lines of its own.
  struct WorkerSlot {
    alignas(kCacheLinePairBytes) std::atomic<uint64_t> num_assigned = 0;  // written by the leader
    Function function = nullptr;                                          // null: stop
    const void* argument = nullptr;
    bool assigned = false;                                                 // in the current run()
    alignas(kCacheLinePairBytes) std::atomic<uint64_t> num_completed = 0;  // written by the worker
    std::atomic<bool> arrived = false;                                     // in worker_loop()
  };

  static void assign(WorkerSlot& slot, Function function, const void* argument);
  static void wait_for(const WorkerSlot& slot);

  int threads_ = 1;
  std::vector<WorkerSlot> slots_;  // by thread; slot 0 is unused.  Kept between runs of the pool
};

}  // namespace vitrail
