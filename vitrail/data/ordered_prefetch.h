// SPDX-License-Identifier: Apache-2.0
#pragma once
// Work done ahead of its consumer by a few threads, delivered in order: how decoding and inference share the cores.
#include <algorithm>
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
  size_t in_flight = 16;  // items being produced or waiting for the consumer, at least 1: this bounds the memory
};

// Runs step(slot, index) for index 0, 1, … count − 1 on its own threads, in any order, never more than `in_flight`
// ahead of the consumer; slot is index mod in_flight, so no two running steps share one.  The threads are plain ones
// whose parallel loops run on themselves alone: they never start an OpenMP team.
//
// One consumer: wait() until the next index is done, use its slot, release() it.
class PrefetchThreads {
 public:
  using Step = std::function<void(size_t slot, size_t index)>;  // must not throw

  PrefetchThreads(size_t count, PrefetchOptions options, Step step);  // throws Error when an option is below 1
  ~PrefetchThreads();  // starts no further step, waits for those that run
  PrefetchThreads(const PrefetchThreads&) = delete;
  PrefetchThreads& operator=(const PrefetchThreads&) = delete;

  std::optional<size_t> wait();  // the slot of the next index; nothing after the last
  void release();                // the slot of the last wait() may be filled again

 private:
  void work();
  void stop();

  const size_t count_, in_flight_;
  const Step step_;
  std::mutex mutex_;
  std::condition_variable room_, ready_;
  std::vector<bool> done_;  // per slot
  size_t next_ = 0;         // index to be started next
  size_t consumed_ = 0;     // indices released
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

// The items produce(0) … produce(count − 1), in that order, made ahead of time.
//
//   OrderedPrefetch<Sample> samples(n, [&](size_t i) { return dataset.get(i); }, {.threads = 2});
//   for (size_t i = 0; i < n; ++i) {
//     try { use(*samples.next()); } catch (const Error& error) { report(i, error); }
//   }
template <class Item>
class OrderedPrefetch {
 public:
  // produce is called from several threads at once and must outlive the object's use of what it refers to.
  OrderedPrefetch(size_t count, std::function<Item(size_t)> produce, PrefetchOptions options)
      : produce_(std::move(produce)),
        slots_(std::min(options.in_flight, count)),
        threads_(count, {options.threads, options.in_flight},
                 [this](size_t slot, size_t index) { fill(slot, index); }) {}

  // The next item, waiting for it; nothing after the last.  Throws what produce threw for it; the call after that gives
  // the item after it.
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
  PrefetchThreads threads_;  // last: its threads end before what they use goes
};

}  // namespace vitrail::data
