// SPDX-License-Identifier: Apache-2.0
// Loops of threads that wait for them awake: the same pieces and failures as without, and threads that do come.
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

// Where each element's piece began, as parallel_for divides them.
std::vector<int64_t> beginnings(int64_t length, int64_t grain) {
  std::vector<int64_t> result(static_cast<size_t>(length), -1);
  parallel_for(0, length, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) result[i] = first;
  });
  return result;
}

TEST(SpinThreadPool, LoopsAreDividedAsWithout) {
  for (const int threads : {1, 2, 3, 7}) {
    const ThreadCount count(threads);
    for (const int64_t length : {1, 2, 17, 1000}) {
      for (const int64_t grain : {1, 16}) {
        const std::vector<int64_t> expected = beginnings(length, grain);
        with_spin_thread_pool([&] {
          for (int round = 0; round < 20; ++round) EXPECT_EQ(beginnings(length, grain), expected) << round;
        });
      }
    }
  }
}

TEST(SpinThreadPool, BalancedLoopsCoverTheirRangeOnce) {
  const ThreadCount count(3);
  with_spin_thread_pool([] {
    for (int64_t length = 1; length < 200; ++length) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(length));
      parallel_for_balanced(0, length, 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) ++visits[i];
      });
      for (const auto& number : visits) EXPECT_EQ(number, 1);
    }
  });
}

// Until all have come the leader does their pieces.
TEST(SpinThreadPool, ItsThreadsCome) {
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

TEST(SpinThreadPool, FailuresReachTheCallerAndTheNextLoopRuns) {
  const ThreadCount count(3);
  const auto failing_loop = [] {
    parallel_for(0, 3, 1, [](int64_t first, int64_t) {
      if (first > 0) throw Error(str("piece ", first));
    });
  };
  std::vector<int64_t> after;
  with_spin_thread_pool([&] {
    try {
      failing_loop();
      FAIL() << "the exception was lost";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "piece 1");
    }
    after = beginnings(9, 1);
  });
  EXPECT_EQ(after, beginnings(9, 1));
  EXPECT_THROW(with_spin_thread_pool(failing_loop), Error) << "out of the team";
  EXPECT_EQ(beginnings(9, 1), after) << "after a team that failed";
}

TEST(SpinThreadPool, ATeamOrAnotherThreadCountInsideAndATeamInsideALoop) {
  const ThreadCount count(2);
  std::atomic<int> done{0};
  with_spin_thread_pool([&] {
    with_spin_thread_pool([&] { parallel_for(0, 2, 1, [&](int64_t first, int64_t last) { done += last - first; }); });
    const ThreadCount more(5);  // than the team has
    parallel_for(0, 100, 1, [&](int64_t first, int64_t last) { done += last - first; });
  });
  EXPECT_EQ(done, 102);
  parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    with_spin_thread_pool([&] { parallel_for(0, 4, 1, [&](int64_t first, int64_t last) { done += last - first; }); });
  });
  EXPECT_EQ(done, 110);
}

TEST(SpinThreadPool, ConcurrentLeadersHaveTeamsOfTheirOwn) {
  std::vector<int64_t> sums(4);
  std::vector<std::thread> leaders;
  for (int64_t& sum : sums) {
    leaders.emplace_back([&sum] {
      const ThreadCount count(2);
      for (int round = 0; round < 10; ++round) {
        with_spin_thread_pool([&sum] {
          for (int loop = 0; loop < 20; ++loop) {
            std::vector<int64_t> parts(2);
            parallel_for(0, 100, 50, [&](int64_t first, int64_t last) { parts[first / 50] = last - first; });
            sum += std::accumulate(parts.begin(), parts.end(), int64_t{0});
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
