// SPDX-License-Identifier: Apache-2.0
#pragma once
// The threads of a parallel loop.  They stay alive between loops.  A thread that waits first spins, because starting a
// loop then costs two cache-line transfers between cores, and soon sleeps, because the core may have other work.
// Only base uses it; see parallel.h.
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "vitrail/base/aligned_memory_internal.h"

namespace vitrail {

// Belongs to one thread, the leader, which starts its workers when a loop first needs them.
class ThreadTeam {
 public:
  ThreadTeam() = default;
  ~ThreadTeam();  // ends the workers
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // Calls task(i) for all i < count and returns when all calls have ended.  `task` must not throw.  Worker i runs task
  // i, so that the same core sees the same part of the data in every loop.  The leader runs task 0, and then the tasks
  // that their workers have not begun: a loop never waits for a thread that sleeps or that does not get a core.
  template <class Task>
  void run(int64_t count, const Task& task) {
    run_tasks(
        count, [](const void* argument, int64_t index) { (*static_cast<const Task*>(argument))(index); }, &task);
  }

  // The number of threads, the leader included.
  int64_t size() const { return static_cast<int64_t>(workers_.size()) + 1; }

 private:
  using Function = void (*)(const void* argument, int64_t index);

  enum class State : uint32_t {
    idle,      // waits for a task, spinning
    asleep,    // waits for a task, sleeping
    assigned,  // has a task that neither the worker nor the leader has begun
    running,   // the worker runs its task
    awaited,   // likewise, and the leader sleeps until it has ended
    ended,     // the worker is to return
  };

  struct Worker {
    alignas(kCacheLinePairBytes) std::atomic<State> state = State::idle;
    Function function = nullptr;  // the task: written by the leader in states idle and asleep
    const void* argument = nullptr;
    std::thread thread;
  };

  void run_tasks(int64_t count, Function function, const void* argument);
  void start_workers(int64_t count);
  static void worker_loop(Worker& worker, int64_t index);
  static State wait_for_task(Worker& worker);
  static void wait_for_end(Worker& worker);

  std::vector<std::unique_ptr<Worker>> workers_;  // worker i is workers_[i - 1]
};

}  // namespace vitrail
