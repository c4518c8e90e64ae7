// SPDX-License-Identifier: Apache-2.0
#pragma once
// Items produced ahead of their consumer by worker threads and delivered in order, such as images decoded during
// inference.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
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
  int threads = 1;              // that produce items, at least 1
  size_t in_flight = 16;        // items in production or ready, at least 1; bounds the memory
  size_t max_bytes = SIZE_MAX;  // while ready items have as many bytes, only the next item of the consumer is begun
};

// Runs step(slot, index) for index 0, 1, … count − 1 on its own threads, in any order, at most `in_flight` indices
// ahead of the consumer.  slot is index mod in_flight, so running steps have distinct slots.  A step returns the bytes
// of its item.  Parallel loops inside a step are serial: the threads start none of their own.
//
// The single consumer calls wait() for the next index, uses its slot, and calls release().
class PrefetchThreads {
 public:
  using Step = std::function<size_t(size_t slot, size_t index)>;  // must not throw

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
  bool has_room() const;

  const size_t count_, in_flight_, max_bytes_;
  const Step step_;
  std::mutex mutex_;
  std::condition_variable room_, ready_;
  std::vector<bool> done_;          // per slot
  std::vector<size_t> bytes_;       // per slot, 0 unless it is done
  size_t ready_bytes_ = 0;          // their sum
  size_t next_ = 0, consumed_ = 0;  // indices: to start next, released
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
  // Calls produce and bytes_of from several threads at once.  Objects that they refer to must outlive this one.
  OrderedPrefetch(
      size_t count, std::function<Item(size_t)> produce, PrefetchOptions options,
      std::function<size_t(const Item&)> bytes_of = [](const Item&) { return size_t{0}; })
      : produce_(std::move(produce)),
        bytes_of_(std::move(bytes_of)),
        slots_(std::min(options.in_flight, count)),
        threads_(count, options, [this](size_t slot, size_t index) { return fill(slot, index); }) {}

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

  size_t fill(size_t slot, size_t index) {
    try {
      return bytes_of_(slots_[slot].item.emplace(produce_(index)));
    } catch (...) {
      slots_[slot].failure = std::current_exception();
      return 0;
    }
  }

  std::function<Item(size_t)> produce_;
  std::function<size_t(const Item&)> bytes_of_;
  std::vector<Slot> slots_;
  PrefetchThreads threads_;  // last member: destroyed first, before the slots that its threads use
};

}  // namespace vitrail::data
