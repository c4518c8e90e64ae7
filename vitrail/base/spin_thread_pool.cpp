// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/spin_thread_pool_internal.h"

#include <thread>

namespace vitrail {
namespace {

// Spins until the condition holds.  After about the time that a model spends between two loops, it yields the core to
// other threads after each check.
template <class Condition>
void wait_until(const Condition& condition) {
  constexpr int kSpins = 20'000;
  for (int checks = 0; !condition(); ++checks) {
    if (checks >= kSpins) {
      std::this_thread::yield();
      continue;
    }
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }
}

}  // namespace

void SpinThreadPool::start(int threads) {
  threads_ = threads;
  if (std::ssize(slots_) < threads) {
    slots_ = std::vector<WorkerSlot>(static_cast<size_t>(threads));
    return;
  }
  for (WorkerSlot& slot : slots_) {
    slot.num_assigned.store(0, std::memory_order_relaxed);
    slot.num_completed.store(0, std::memory_order_relaxed);
    slot.arrived.store(false, std::memory_order_relaxed);
    slot.assigned = false;
  }
}

void SpinThreadPool::worker_loop(int worker) {
  WorkerSlot& slot = slots_[worker];
  slot.arrived.store(true, std::memory_order_release);
  for (uint64_t next = 1;; ++next) {
    wait_until([&] { return slot.num_assigned.load(std::memory_order_acquire) >= next; });
    if (!slot.function) return;
    slot.function(slot.argument, worker);
    slot.num_completed.store(next, std::memory_order_release);
  }
}

void SpinThreadPool::assign(WorkerSlot& slot, Function function, const void* argument) {
  slot.function = function;
  slot.argument = argument;
  slot.num_assigned.store(slot.num_assigned.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void SpinThreadPool::wait_for(const WorkerSlot& slot) {
  if (!slot.assigned) return;
  wait_until([&] {
    return slot.num_completed.load(std::memory_order_acquire) == slot.num_assigned.load(std::memory_order_relaxed);
  });
}

void SpinThreadPool::stop() {
  for (int worker = 1; worker < threads_; ++worker) assign(slots_[worker], nullptr, nullptr);
}

}  // namespace vitrail
