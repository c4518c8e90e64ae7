// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/worker_pool_internal.h"

#include <sys/resource.h>
#include <unistd.h>

#include <system_error>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail::serve {
namespace {

// A third of the processor time that another thread has beside this one.
void lower_priority() {
  constexpr int kNice = 5;
  const auto thread = static_cast<id_t>(::gettid());
  ::setpriority(PRIO_PROCESS, thread, ::getpriority(PRIO_PROCESS, thread) + kNice);
}

}  // namespace

WorkerPool::WorkerPool(int threads) {
  try {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this] { loop(light_); });
      threads_.emplace_back([this] {
        lower_priority();
        loop(heavy_);
      });
    }
  } catch (const std::system_error& failure) {
    stop();  // a thread must end before its object does
    throw Error("serve", str(2 * threads, " threads that decode images"), failure.what());
  }
}

void WorkerPool::post(PoolTask task) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  Lane& lane = task.is_heavy ? heavy_ : light_;
  lane.waiting[task.client].push_back(std::move(task.run));
  lane.work.notify_one();
}

void WorkerPool::post_urgent(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  light_.urgent.push_back(std::move(task));
  light_.work.notify_one();
}

void WorkerPool::stop() {
  Lane dropped[2];  // destroyed without the lock, because a task may post from its destructor
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    for (const auto& [from, to] : {std::pair{&light_, &dropped[0]}, {&heavy_, &dropped[1]}}) {
      to->urgent.swap(from->urgent);
      to->waiting.swap(from->waiting);
      from->work.notify_all();
    }
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

// The first urgent task, else the first task of the next client; the lane must not be empty.
std::function<void()> WorkerPool::Lane::take() {
  std::function<void()> task;
  if (!urgent.empty()) {
    task = std::move(urgent.front());
    urgent.pop_front();
    return task;
  }
  auto next = waiting.upper_bound(last);
  if (next == waiting.end()) next = waiting.begin();
  last = next->first;
  task = std::move(next->second.front());
  next->second.pop_front();
  if (next->second.empty()) waiting.erase(next);
  return task;
}

void WorkerPool::loop(Lane& lane) {
  const ThreadCount one(1);  // the pool is the parallelism
  std::unique_lock lock(mutex_);
  while (true) {
    lane.work.wait(lock, [&] { return stopped_ || !lane.is_empty(); });
    if (stopped_) return;
    std::function<void()> task = lane.take();
    lock.unlock();
    task();
    task = nullptr;  // its destructor may post
    lock.lock();
  }
}

}  // namespace vitrail::serve
