// SPDX-License-Identifier: Apache-2.0
#pragma once
// Threads that decode images and write responses, beside the threads that compute.
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace vitrail::serve {

class WorkerPool {
 public:
  explicit WorkerPool(int threads);
  ~WorkerPool() { stop(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Runs a task, which must not throw, on one of the threads; dropped after stop().  urgent: before the others, for
  // responses whose results are ready.
  void post(std::function<void()> task, bool urgent = false);
  void stop();  // finishes running tasks and drops the others

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<std::function<void()>> tasks_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace vitrail::serve
