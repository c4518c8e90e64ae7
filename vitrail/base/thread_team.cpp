// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/thread_team_internal.h"

#include <algorithm>
#include <chrono>
#include <system_error>

namespace vitrail {
namespace {

// About the time that a model spends between two loops, and a few times what it costs to sleep and to be woken: longer
// spinning would take time from the threads that others run on the core.
constexpr std::chrono::microseconds kSpinTime{50};

// Spins until the condition holds, for kSpinTime at most.  Returns whether it holds.
template <class Condition>
bool spin_until(const Condition& condition) {
  using Clock = std::chrono::steady_clock;
  constexpr int kChecksPerClock = 16;  // reading the clock takes as long as one or two checks
  if (condition()) return true;
  const Clock::time_point end = Clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kChecksPerClock; ++i) {
#if defined(__x86_64__) || defined(__i386__)
      __builtin_ia32_pause();
#elif defined(__aarch64__)
      asm volatile("yield");
#endif
      if (condition()) return true;
    }
  } while (Clock::now() < end);
  return false;
}

}  // namespace

// A change of state that another thread may make as well is a compare-and-swap; whoever changes `asleep` or `awaited`
// wakes the thread that sleeps in it.
ThreadTeam::~ThreadTeam() {
  for (const auto& worker : workers_) {
    worker->state.store(State::ended, std::memory_order_release);
    worker->state.notify_one();
  }
  for (const auto& worker : workers_) worker->thread.join();
}

// Fewer if the system provides no more threads.
void ThreadTeam::start_workers(int64_t count) {
  try {
    while (std::ssize(workers_) < count) {
      auto worker = std::make_unique<Worker>();
      worker->thread = std::thread(&ThreadTeam::worker_loop, std::ref(*worker), std::ssize(workers_) + 1);
      workers_.push_back(std::move(worker));
    }
  } catch (const std::system_error&) {
  }
}

void ThreadTeam::run_tasks(int64_t count, Function function, const void* argument) {
  start_workers(count - 1);
  const int64_t num_assigned = std::min(count, size());
  for (int64_t i = 1; i < num_assigned; ++i) {
    Worker& worker = *workers_[i - 1];
    worker.function = function;
    worker.argument = argument;
    if (worker.state.exchange(State::assigned, std::memory_order_acq_rel) == State::asleep) worker.state.notify_one();
  }
  function(argument, 0);
  for (int64_t i = num_assigned; i < count; ++i) function(argument, i);
  for (int64_t i = 1; i < num_assigned; ++i) {
    State expected = State::assigned;
    const bool taken = workers_[i - 1]->state.compare_exchange_strong(expected, State::idle, std::memory_order_acq_rel);
    if (taken) function(argument, i);
  }
  for (int64_t i = 1; i < num_assigned; ++i) wait_for_end(*workers_[i - 1]);
}

void ThreadTeam::worker_loop(Worker& worker, int64_t index) {
  while (wait_for_task(worker) != State::ended) {
    State expected = State::assigned;
    if (!worker.state.compare_exchange_strong(expected, State::running, std::memory_order_acq_rel)) continue;
    worker.function(worker.argument, index);
    expected = State::running;
    if (worker.state.compare_exchange_strong(expected, State::idle, std::memory_order_acq_rel)) continue;
    worker.state.store(State::idle, std::memory_order_release);  // was awaited
    worker.state.notify_one();
  }
}

// Returns `assigned` or `ended`.
ThreadTeam::State ThreadTeam::wait_for_task(Worker& worker) {
  for (;;) {
    State state = State::idle;
    if (spin_until([&] { return (state = worker.state.load(std::memory_order_acquire)) != State::idle; })) return state;
    if (worker.state.compare_exchange_strong(state, State::asleep, std::memory_order_acq_rel)) {
      worker.state.wait(State::asleep, std::memory_order_acquire);
    }
  }
}

void ThreadTeam::wait_for_end(Worker& worker) {
  State state = State::running;
  if (spin_until([&] { return (state = worker.state.load(std::memory_order_acquire)) != State::running; })) return;
  if (worker.state.compare_exchange_strong(state, State::awaited, std::memory_order_acq_rel)) {
    worker.state.wait(State::awaited, std::memory_order_acquire);
  }
}

}  // namespace vitrail
