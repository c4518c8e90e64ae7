// SPDX-License-Identifier: Apache-2.0
// Loops inside with_spin_thread_pool() have the same partition and exceptions as outside, and run on the pool's
// threads.
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail {
namespace {

// For each element, the first element of the range of parallel_for that contains it.
std::vector<int64_t> range_starts(int64_t length, int64_t grain) {
  std::vector<int64_t> result(static_cast<size_t>(length), -1);
  parallel_for(0, length, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) result[i] = first;
  });
  return result;
}

TEST(SpinThreadPool, LoopsHaveTheSamePartitionAsWithoutIt) {
  for (const int threads : {1, 2, 3, 7}) {
    const ThreadCount count(threads);
    for (const int64_t length : {1, 2, 17, 1000}) {
      for (const int64_t grain : {1, 16}) {
        const std::vector<int64_t> expected = range_starts(length, grain);
        with_spin_thread_pool([&] {
          for (int round = 0; round < 20; ++round) EXPECT_EQ(range_starts(length, grain), expected) << round;
        });
      }
    }
  }
}

TEST(SpinThreadPool, BalancedLoopsCoverAllElementsOnce) {
  const ThreadCount count(3);
  with_spin_thread_pool([] {
    for (int64_t length = 1; length < 200; ++length) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(length));
      parallel_for_balanced(0, length, 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) ++visits[i];
      });
      for (const auto& count_of_visits : visits) EXPECT_EQ(count_of_visits, 1);
    }
  });
}

// The leader runs the tasks of workers that have not arrived yet, so the loop is repeated until all have.
TEST(SpinThreadPool, LoopsRunOnAllThreadsOfThePool) {
  const ThreadCount count(3);
  with_spin_thread_pool([] {
    std::set<std::thread::id> seen;
    while (seen.size() < 3) {
      std::vector<std::thread::id> workers(3);
      parallel_for(0, 3, 1, [&](int64_t first, int64_t) {
        workers[first] = std::this_thread::get_id();
        std::this_thread::yield();
      });
      EXPECT_EQ(workers[0], std::this_thread::get_id());
      seen = {workers.begin(), workers.end()};
    }
  });
}

TEST(SpinThreadPool, ExceptionsReachTheCallerAndTheNextLoopRuns) {
  const ThreadCount count(3);
  const auto failing_loop = [] {
    parallel_for(0, 3, 1, [](int64_t first, int64_t) {
      if (first > 0) throw Error(str("range ", first));
    });
  };
  std::vector<int64_t> after;
  with_spin_thread_pool([&] {
    try {
      failing_loop();
      FAIL() << "the exception was lost";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "range 1");
    }
    after = range_starts(9, 1);
  });
  EXPECT_EQ(after, range_starts(9, 1));
  EXPECT_THROW(with_spin_thread_pool(failing_loop), Error) << "through the pool";
  EXPECT_EQ(range_starts(9, 1), after) << "after a pool that failed";
}

TEST(SpinThreadPool, NestedPoolsThreadCountsAndLoopsWork) {
  const ThreadCount count(2);
  std::atomic<int> done{0};
  with_spin_thread_pool([&] {
    with_spin_thread_pool([&] { parallel_for(0, 2, 1, [&](int64_t first, int64_t last) { done += last - first; }); });
    const ThreadCount more(5);  // more threads than the pool has
    parallel_for(0, 100, 1, [&](int64_t first, int64_t last) { done += last - first; });
  });
  EXPECT_EQ(done, 102);
  parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    with_spin_thread_pool([&] { parallel_for(0, 4, 1, [&](int64_t first, int64_t last) { done += last - first; }); });
  });
  EXPECT_EQ(done, 110);
}

TEST(SpinThreadPool, ConcurrentLeadersHaveTheirOwnPools) {
  std::vector<int64_t> sums(4);
  std::vector<std::thread> leaders;
  for (int64_t& sum : sums) {
    leaders.emplace_back([&sum] {
      const ThreadCount count(2);
      for (int round = 0; round < 10; ++round) {
        with_spin_thread_pool([&sum] {
          for (int loop = 0; loop < 20; ++loop) {
            std::vector<int64_t> lengths(2);
            parallel_for(0, 100, 50, [&](int64_t first, int64_t last) { lengths[first / 50] = last - first; });
            sum += std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
          }
        });
      }
    });
  }
  for (std::thread& leader : leaders) leader.join();
  EXPECT_EQ(sums, std::vector<int64_t>(4, 10 * 20 * 100));
}

}  // namespace
}  // namespace vitrail
