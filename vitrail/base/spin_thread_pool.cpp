// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/spin_thread_pool_internal.h"

#include <thread>

namespace vitrail {
namespace {

// Awake for as long as a step of a model may take on one thread, then leaving the core to whoever wants it.
template <class Condition>
void wait_until(const Condition& condition) {
  constexpr int kAwake = 20'000;
  for (int looks = 0; !condition(); ++looks) {
    if (looks >= kAwake) {
      std::this_thread::yield();
      continue;
    }
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }
}

}  // namespace

void SpinThreadPool::begin(int threads) {
  threads_ = threads;
  if (std::ssize(desks_) < threads) {
    desks_ = std::vector<Desk>(static_cast<size_t>(threads));
    return;
  }
  for (Desk& desk : desks_) {
    desk.handed.store(0, std::memory_order_relaxed);
    desk.done.store(0, std::memory_order_relaxed);
    desk.here.store(false, std::memory_order_relaxed);
    desk.busy = false;
  }
}

void SpinThreadPool::serve(int member) {
  Desk& desk = desks_[member];
  desk.here.store(true, std::memory_order_release);
  for (uint64_t number = 1;; ++number) {
    wait_until([&] { return desk.handed.load(std::memory_order_acquire) >= number; });
    if (!desk.work) return;
    desk.work(desk.what, member);
    desk.done.store(number, std::memory_order_release);
  }
}

void SpinThreadPool::hand(Desk& desk, Work work, const void* what) {
  desk.work = work;
  desk.what = what;
  desk.handed.store(desk.handed.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void SpinThreadPool::wait_for(const Desk& desk) {
  if (!desk.busy) return;
  wait_until([&] { return desk.done.load(std::memory_order_acquire) == desk.handed.load(std::memory_order_relaxed); });
}

void SpinThreadPool::dismiss() {
  for (int member = 1; member < threads_; ++member) hand(desks_[member], nullptr, nullptr);
}

}  // namespace vitrail
