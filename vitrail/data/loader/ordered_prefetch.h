// SPDX-License-Identifier: Apache-2.0
#pragma once
// Items produced ahead of their consumer by worker threads and delivered in order, such as images decoded during
// inference.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace vitrail::data {

struct PrefetchOptions {
  int threads = 1;        // that produce items, at least 1
  size_t in_flight = 16;  // items in production or ready, at least 1; bounds the memory
};

// Runs step(slot, index) for index 0, 1, … count − 1 on its own threads, in any order, at most `in_flight` indices
// ahead of the consumer.  slot is index mod in_flight, so running steps have distinct slots.  Parallel loops inside a
// step are serial: the threads start none of their own.
//
// The single consumer calls wait() for the next index, uses its slot, and calls release().
class PrefetchThreads {
 public:
  using Step = std::function<void(size_t slot, size_t index)>;  // must not throw

  PrefetchThreads(size_t count, PrefetchOptions options, Step step);  // throws Error for an option below 1
  ~PrefetchThreads();  // cancels steps that have not started, waits for running ones
  PrefetchThreads(const PrefetchThreads&) = delete;
  PrefetchThreads& operator=(const PrefetchThreads&) = delete;

  std::optional<size_t> wait();                   // the slot of the next index, when it is done; none after the last
  bool wait_for(std::chrono::milliseconds time);  // whether wait() would return at once, now or within this time
  void release();                                 // makes the slot of the last wait() available

 private:
  void work();
  void stop();

  const size_t count_, in_flight_;
  const Step step_;
  std::mutex mutex_;
  std::condition_variable room_, ready_;
  std::vector<bool> done_;  // per slot
  size_t next_ = 0;         // index to start next
  size_t consumed_ = 0;     // indices released
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

// The items produce(0) … produce(count − 1) in order, produced ahead of time.
//
//   OrderedPrefetch<Sample> samples(n, [&](size_t i) { return dataset.get(i); }, {.threads = 2});
//   for (size_t i = 0; i < n; ++i) {
//     try { use(*samples.next()); } catch (const Error& error) { report(i, error); }
//   }
template <class Item>
class OrderedPrefetch {
 public:
  // Calls produce from several threads at once.  Objects that it refers to must outlive this one.
  OrderedPrefetch(size_t count, std::function<Item(size_t)> produce, PrefetchOptions options)
      : produce_(std::move(produce)),
        slots_(std::min(options.in_flight, count)),
        threads_(count, {options.threads, options.in_flight},
                 [this](size_t slot, size_t index) { fill(slot, index); }) {}

  // Whether next() would return at once, now or within `time`.
  bool ready_within(std::chrono::milliseconds time) { return threads_.wait_for(time); }

  // Waits for the next item and returns it; none after the last.  Rethrows the exception of its produce(); the
  // following call continues with the item after it.
  std::optional<Item> next() {
    const std::optional<size_t> slot = threads_.wait();
    if (!slot) return std::nullopt;
    std::optional<Item> item = std::move(slots_[*slot].item);
    const std::exception_ptr failure = std::exchange(slots_[*slot].failure, nullptr);
    slots_[*slot].item.reset();
    threads_.release();
    if (failure) std::rethrow_exception(failure);
    return item;
  }

 private:
  struct Slot {
    std::optional<Item> item;
    std::exception_ptr failure;
  };

  void fill(size_t slot, size_t index) {
    try {
      slots_[slot].item.emplace(produce_(index));
    } catch (...) {
      slots_[slot].failure = std::current_exception();
    }
  }

  std::function<Item(size_t)> produce_;
  std::vector<Slot> slots_;
  PrefetchThreads threads_;  // last member: destroyed first, before the slots that its threads use
};

}  // namespace vitrail::data
