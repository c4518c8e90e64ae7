// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/loader/ordered_prefetch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>

#include "tests/support/errors.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail::data {
namespace {

// Work of varying length, so that items finish out of order.
size_t uneven_work(size_t index) {
  volatile size_t sum = 0;
  for (size_t i = 0; i < (index * 7919 % 13) * 2000; ++i) sum = sum + i;
  return index;
}

TEST(OrderedPrefetchConcurrent, DeliversEveryItemInOrder) {
  for (const int threads : {1, 2, 5}) {
    for (const size_t in_flight : {1, 3, 64}) {
      OrderedPrefetch<size_t> items(200, uneven_work, {.threads = threads, .in_flight = in_flight});
      for (size_t i = 0; i < 200; ++i) EXPECT_EQ(items.next(), i);
      EXPECT_EQ(items.next(), std::nullopt);
      EXPECT_EQ(items.next(), std::nullopt) << "the end stays the end";
    }
  }
}

TEST(OrderedPrefetchConcurrent, ItemsNeedNoDefaultConstructorOrCopy) {
  struct Item {
    explicit Item(size_t i) : text(std::make_unique<std::string>(std::to_string(i))) {}
    std::unique_ptr<std::string> text;
  };
  OrderedPrefetch<Item> items(20, [](size_t i) { return Item(i); }, {.threads = 3, .in_flight = 4});
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(*items.next()->text, std::to_string(i));
}

TEST(OrderedPrefetchConcurrent, AFailureIsRethrownForItsItemOnly) {
  const auto produce = [](size_t i) {
    if (i % 7 == 3) throw Error(str("item ", i));
    return uneven_work(i);
  };
  OrderedPrefetch<size_t> items(100, produce, {.threads = 4, .in_flight = 8});
  for (size_t i = 0; i < 100; ++i) {
    try {
      EXPECT_EQ(items.next(), i);
      EXPECT_NE(i % 7, 3u) << "the failure of item " << i << " was lost";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), str("item ", i));
    }
  }
  EXPECT_EQ(items.next(), std::nullopt);
}

// Counts its living instances and their maximum.
struct Counted {
  static inline std::atomic<int> alive{0}, max_alive{0};
  Counted() { count(); }
  Counted(Counted&&) { count(); }
  ~Counted() { --alive; }
  static void count() {
    const int now = ++alive;
    int before = max_alive;
    while (now > before && !max_alive.compare_exchange_weak(before, now)) {
    }
  }
};

TEST(OrderedPrefetchConcurrent, ItemsInFlightAreLimited) {
  std::atomic<size_t> consumed{0}, furthest{0};
  {
    const auto produce = [&](size_t i) {
      size_t before = furthest;
      const size_t ahead = i - consumed;
      while (ahead > before && !furthest.compare_exchange_weak(before, ahead)) {
      }
      return Counted();
    };
    OrderedPrefetch<Counted> items(300, produce, {.threads = 4, .in_flight = 6});
    for (size_t i = 0; i < 300; ++i) {
      items.next();
      consumed = i + 1;
    }
  }
  // Item i may begin once item i − 6 was taken; `consumed` is raised a moment after that.
  EXPECT_LE(furthest, 6u);
  // Six in flight, one being moved out, and the four temporaries of the threads.
  EXPECT_LE(Counted::max_alive, 11);
  EXPECT_EQ(Counted::alive, 0) << "every item is destroyed";
}

// With 10 bytes an item and at most 25, three are ready and none is begun, until the consumer takes one.
TEST(OrderedPrefetchConcurrent, BytesOfReadyItemsAreLimited) {
  std::atomic<size_t> begun{0};
  OrderedPrefetch<size_t> items(
      20,
      [&](size_t i) {
        ++begun;
        return i;
      },
      {.threads = 1, .in_flight = 16, .max_bytes = 25}, [](size_t) { return size_t{10}; });
  for (size_t i = 0; i < 20; ++i) {
    for (int wait = 0; wait < 200 && begun < std::min<size_t>(i + 3, 20); ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(begun, std::min<size_t>(i + 3, 20));
    EXPECT_EQ(items.next(), i);
  }
}

// An item alone may be larger than the limit.
TEST(OrderedPrefetchConcurrent, LargeItemsAreProducedOneAtATime) {
  for (const int threads : {1, 3}) {
    OrderedPrefetch<size_t> items(50, uneven_work, {.threads = threads, .in_flight = 8, .max_bytes = 1},
                                  [](size_t) { return size_t{100}; });
    for (size_t i = 0; i < 50; ++i) EXPECT_EQ(items.next(), i);
    EXPECT_EQ(items.next(), std::nullopt);
  }
}

TEST(OrderedPrefetchConcurrent, DestructionStartsNoFurtherItem) {
  std::atomic<int> started{0};
  for (int taken = 0; taken < 20; ++taken) {
    started = 0;
    OrderedPrefetch<size_t> items(1000000,
                                  [&](size_t i) {
                                    ++started;
                                    return uneven_work(i);
                                  },
                                  {.threads = 3, .in_flight = 5});
    for (int i = 0; i < taken; ++i) items.next();
  }
  EXPECT_LE(started, 19 + 5);
}

TEST(OrderedPrefetchConcurrent, ParallelLoopsInsideAreSerial) {
  OrderedPrefetch<int> items(8, [](size_t) { return num_threads(); }, {.threads = 2, .in_flight = 4});
  while (const auto threads = items.next()) EXPECT_EQ(*threads, 1);
}

TEST(OrderedPrefetch, NoItemsEndAtOnce) {
  OrderedPrefetch<size_t> items(0, uneven_work, {.threads = 2});
  EXPECT_EQ(items.next(), std::nullopt);
}

TEST(OrderedPrefetch, OptionsOutOfRangeAreErrors) {
  EXPECT_THROW(OrderedPrefetch<size_t>(1, uneven_work, {.threads = 0}), Error);
  EXPECT_THROW(OrderedPrefetch<size_t>(1, uneven_work, {.threads = 1, .in_flight = 0}), Error);
}

TEST(OrderedPrefetchConcurrent, TellsWhetherAnItemIsReady) {
  std::promise<void> allowed;
  const std::shared_future<void> gate = allowed.get_future().share();
  OrderedPrefetch<size_t> items(2,
                                [&](size_t i) {
                                  gate.wait();
                                  return 10 + i;
                                },
                                {.threads = 1, .in_flight = 1});
  EXPECT_FALSE(items.ready_within(std::chrono::milliseconds(0)));
  EXPECT_FALSE(items.ready_within(std::chrono::milliseconds(1)));
  allowed.set_value();
  EXPECT_TRUE(items.ready_within(std::chrono::minutes(1)));
  EXPECT_TRUE(items.ready_within(std::chrono::milliseconds(0))) << "it stays ready";
  EXPECT_EQ(items.next(), 10u);
  EXPECT_TRUE(items.ready_within(std::chrono::minutes(1))) << "the next one";
  EXPECT_EQ(items.next(), 11u);
  EXPECT_TRUE(items.ready_within(std::chrono::milliseconds(0))) << "the end";
  EXPECT_EQ(items.next(), std::nullopt);
}

TEST(PrefetchThreadsConcurrent, SlotsAreIndicesModuloThoseInFlight) {
  std::vector<std::pair<size_t, size_t>> steps(10);
  PrefetchThreads threads(10, {.threads = 2, .in_flight = 3}, [&](size_t slot, size_t index) {
    steps[index] = {slot, index + 100};
    return size_t{0};
  });
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(threads.wait(), i % 3);
    EXPECT_EQ(threads.wait(), i % 3) << "until it is released";
    EXPECT_EQ(steps[i], (std::pair<size_t, size_t>{i % 3, i + 100}));
    threads.release();
  }
  EXPECT_EQ(threads.wait(), std::nullopt);
  EXPECT_TRUE(threads.wait_for(std::chrono::milliseconds(0)));
}

TEST(OrderedPrefetch, RefusalsNameTheOption) {
  const auto refusal = [](const PrefetchOptions& options) -> std::string {
    try {
      OrderedPrefetch<size_t>(1, uneven_work, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_ERROR(refusal({.threads = 0}), "prefetch", "0");
  EXPECT_ERROR(refusal({.threads = -3}), "prefetch", "-3");
  EXPECT_ERROR(refusal({.threads = 1, .in_flight = 0}), "prefetch", "0");
  EXPECT_EQ(PrefetchOptions().threads, 1);
  EXPECT_EQ(PrefetchOptions().in_flight, 16u);
}

}  // namespace
}  // namespace vitrail::data
