// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/worker_pool_internal.h"

#include <system_error>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail::serve {

WorkerPool::WorkerPool(int threads) {
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { loop(); });
  } catch (const std::system_error& failure) {
    stop();  // a thread must end before its object does
    throw Error("serve", str(threads, " threads that decode images"), failure.what());
  }
}

void WorkerPool::post(std::function<void()> task, bool urgent) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  if (urgent) {
    tasks_.push_front(std::move(task));
  } else {
    tasks_.push_back(std::move(task));
  }
  work_.notify_one();
}

void WorkerPool::stop() {
  std::deque<std::function<void()>> dropped;  // destroyed without the lock, because a task may post from its destructor
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    dropped.swap(tasks_);
    work_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void WorkerPool::loop() {
  const ThreadCount one(1);  // the pool is the parallelism
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [this] { return stopped_ || !tasks_.empty(); });
      if (stopped_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace vitrail::serve
