// SPDX-License-Identifier: Apache-2.0
#pragma once
// Threads that decode images and write responses, beside the threads that compute.
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace vitrail::serve {

constexpr size_t kHeavyBytes = size_t{256} << 10;  // a body or image of more bytes may take long

struct PoolTask {
  std::function<void()> run;  // must not throw
  uint64_t client = 0;        // clients take turns
  bool is_heavy = false;      // it may take long
};

class WorkerPool {
 public:
  // `threads` threads for heavy tasks, which yield the processors to others, and as many for the other tasks.
  explicit WorkerPool(int threads);
  ~WorkerPool() { stop(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Runs a task on one of the threads; dropped after stop().
  void post(PoolTask task);
  // Runs a task before all others: a response whose results are ready.
  void post_urgent(std::function<void()> task);
  void stop();  // finishes running tasks and drops the others

 private:
  struct Lane {
    std::condition_variable work = {};
    std::deque<std::function<void()>> urgent = {};
    std::map<uint64_t, std::deque<std::function<void()>>> waiting = {};  // by client
    uint64_t last = 0;                                                   // the client whose task was taken last

    bool is_empty() const { return urgent.empty() && waiting.empty(); }
    std::function<void()> take();
  };

  void loop(Lane& lane);

  std::mutex mutex_;
  Lane light_, heavy_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace vitrail::serve
