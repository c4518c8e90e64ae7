// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/worker_pool_internal.h"

#include <system_error>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail::serve {

WorkerPool::WorkerPool(int threads) : limit_(threads) {
  try {
    for (int i = 0; i < threads + 1; ++i) threads_.emplace_back([this] { loop(); });
  } catch (const std::system_error& failure) {
    stop();  // a thread must end before its object does
    throw Error("serve", str(threads, " threads that decode images"), failure.what());
  }
}

void WorkerPool::post(PoolTask task) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  (task.is_heavy ? heavy_ : light_).waiting[task.client].push_back(std::move(task.run));
  work_.notify_all();
}

void WorkerPool::post_urgent(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  urgent_.push_back(std::move(task));
  work_.notify_all();
}

void WorkerPool::stop() {
  std::deque<std::function<void()>> urgent;  // destroyed without the lock, because a task may post from its destructor
  Lane light, heavy;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    urgent.swap(urgent_);
    light.waiting.swap(light_.waiting);
    heavy.waiting.swap(heavy_.waiting);
    work_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

// The first task of the next client, which must exist.
std::function<void()> WorkerPool::Lane::take() {
  auto next = waiting.upper_bound(last);
  if (next == waiting.end()) next = waiting.begin();
  last = next->first;
  std::function<void()> task = std::move(next->second.front());
  next->second.pop_front();
  if (next->second.empty()) waiting.erase(next);
  return task;
}

WorkerPool::Lane* WorkerPool::next_lane() {
  for (Lane* lane : {&light_, &heavy_}) {
    const bool urgent = lane == &light_ && !urgent_.empty();
    if (lane->running < limit_ && (urgent || !lane->waiting.empty())) return lane;
  }
  return nullptr;
}

void WorkerPool::loop() {
  const ThreadCount one(1);  // the pool is the parallelism
  std::unique_lock lock(mutex_);
  while (true) {
    Lane* lane = nullptr;
    work_.wait(lock, [&] { return stopped_ || (lane = next_lane()) != nullptr; });
    if (stopped_) return;
    std::function<void()> task;
    if (lane == &light_ && !urgent_.empty()) {
      task = std::move(urgent_.front());
      urgent_.pop_front();
    } else {
      task = lane->take();
    }
    ++lane->running;
    lock.unlock();
    task();
    task = nullptr;  // its destructor may post
    lock.lock();
    --lane->running;
    work_.notify_all();
  }
}

}  // namespace vitrail::serve
