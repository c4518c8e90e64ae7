// SPDX-License-Identifier: Apache-2.0
// Parallel loops on the back end that was built: coverage, partition, exceptions, nesting and thread counts.
#include "vitrail/base/parallel.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/cgroup_internal.h"
#include "vitrail/base/error.h"

namespace vitrail {
namespace {

using Ranges = std::set<std::pair<int64_t, int64_t>>;

Ranges ranges_of(int64_t begin, int64_t end, int64_t grain) {
  std::mutex mutex;
  Ranges ranges;
  parallel_for(begin, end, grain, [&](int64_t first, int64_t last) {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(ranges.emplace(first, last).second);
  });
  return ranges;
}

TEST(ParallelFor, RangesCoverAllElementsOnceAndHaveAtLeastAGrain) {
  for (const int threads : {1, 2, 3, 7}) {
    const ThreadCount count(threads);
    for (const int64_t length : {1, 2, 5, 16, 17, 1000}) {
      for (const int64_t grain : {-1, 0, 1, 4, 16, 2000}) {
        const int64_t begin = -3;
        int64_t next = begin;
        const Ranges ranges = ranges_of(begin, begin + length, grain);
        EXPECT_LE(ranges.size(), static_cast<size_t>(threads));
        for (const auto& [first, last] : ranges) {
          EXPECT_EQ(first, next);
          EXPECT_LT(first, last);
          EXPECT_TRUE(ranges.size() == 1 || last - first >= grain) << first << " to " << last;
          next = last;
        }
        EXPECT_EQ(next, begin + length) << length << " by " << grain << " on " << threads;
      }
    }
  }
}

TEST(ParallelFor, EmptyRangeDoesNotCallTheBody) {
  parallel_for(5, 5, 1, [](int64_t, int64_t) { FAIL(); });
  parallel_for(5, 4, 1, [](int64_t, int64_t) { FAIL(); });
  parallel_for_balanced(5, 5, 1, [](int64_t, int64_t) { FAIL(); });
  parallel_for_balanced(5, 4, 1, [](int64_t, int64_t) { FAIL(); });
}

TEST(ParallelForBalanced, RangesCoverAllElementsOnceAndHaveAtLeastAGrain) {
  for (const int threads : {1, 2, 3, 7}) {
    const ThreadCount count(threads);
    for (const int64_t length : {1, 2, 5, 16, 17, 1000}) {
      for (const int64_t grain : {-1, 0, 1, 4, 16, 2000}) {
        std::mutex mutex;
        Ranges ranges;
        parallel_for_balanced(-3, -3 + length, grain, [&](int64_t first, int64_t last) {
          const std::lock_guard lock(mutex);
          EXPECT_TRUE(ranges.emplace(first, last).second);
        });
        int64_t next = -3;
        for (const auto& [first, last] : ranges) {
          EXPECT_EQ(first, next);
          EXPECT_LT(first, last);
          EXPECT_TRUE(ranges.size() == 1 || last - first >= grain) << first << " to " << last;
          next = last;
        }
        EXPECT_EQ(next, -3 + length) << length << " by " << grain << " on " << threads;
      }
    }
  }
}

// The range from 0 waits until all other elements are done, also the other elements of its thread's own share.
TEST(ParallelForBalanced, OtherThreadsStealTheWorkOfABlockedThread) {
  const ThreadCount count(2);
  for (const int64_t length : {16, 17, 1000}) {
    std::atomic<int64_t> done{0};
    parallel_for_balanced(0, length, 1, [&](int64_t first, int64_t last) {
      while (first == 0 && done < length - last) std::this_thread::yield();
      done += last - first;
    });
    EXPECT_EQ(done, length);
  }
}

// Threads of given speeds, in virtual time: an element takes thread i `costs[i]` units, and no thread begins one while
// another thread is behind it.  So the schedule does not depend on the machine.
class ThreadsOfUnequalSpeed {
 public:
  explicit ThreadsOfUnequalSpeed(std::vector<int> costs) : costs_(std::move(costs)), clocks_(costs_.size()) {}

  // Returns the number of elements that each thread computed.
  std::vector<int64_t> run(int64_t length, int64_t grain) {
    std::vector<int64_t> elements(costs_.size());
    not_taken_ = length;
    const ThreadCount count(static_cast<int>(costs_.size()));
    parallel_for_balanced(0, length, grain, [&](int64_t first, int64_t last) {
      const size_t thread = index_of_this_thread();
      not_taken_ -= last - first;
      for (int64_t i = first; i < last; ++i) {
        while (not_taken_ > 0 && is_ahead(thread)) std::this_thread::yield();
        clocks_[thread] += costs_[thread];
        ++elements[thread];
      }
    });
    return elements;
  }

 private:
  // In the order of their first calls, which wait for each other.
  size_t index_of_this_thread() {
    size_t index = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto [found, is_new] = threads_.try_emplace(std::this_thread::get_id(), threads_.size());
      index = found->second;
      if (is_new) ++started_;
    }
    while (started_ < costs_.size()) std::this_thread::yield();
    return index;
  }
  bool is_ahead(size_t thread) const { return clocks_[thread] > *std::min_element(clocks_.begin(), clocks_.end()); }

  std::vector<int> costs_;
  std::vector<std::atomic<int64_t>> clocks_;
  std::atomic<int64_t> not_taken_ = 0;
  std::mutex mutex_;
  std::map<std::thread::id, size_t> threads_;
  std::atomic<size_t> started_ = 0;
};

// Equal shares would end at 1.5 to 1.67 times the ideal time.
TEST(ParallelForBalanced, IsCloseToTheIdealScheduleWhereSpeedsDifferByTwo) {
  constexpr int64_t kLength = 240, kGrain = 1;
  for (const std::vector<int>& costs : {std::vector<int>{2, 1}, {2, 1, 1}, {2, 2, 1, 1}}) {
    const std::vector<int64_t> elements = ThreadsOfUnequalSpeed(costs).run(kLength, kGrain);
    double speed = 0;  // elements per unit of time
    for (const int cost : costs) speed += 1.0 / cost;
    for (size_t i = 0; i < costs.size(); ++i) {
      EXPECT_LE(static_cast<double>(elements[i]) * costs[i], 1.3 * kLength / speed)
          << elements[i] << " elements of thread " << i << " of " << costs.size();
    }
    EXPECT_EQ(std::accumulate(elements.begin(), elements.end(), int64_t{0}), kLength);
  }
}

TEST(ParallelForBalanced, RethrowsTheExceptionOfTheLowestRange) {
  const ThreadCount count(3);
  std::atomic<int64_t> done{0};
  try {
    parallel_for_balanced(0, 300, 1, [&](int64_t first, int64_t last) {
      done += last - first;
      for (int64_t i = first; i < last; ++i) {
        if (i % 100 == 77) throw Error(str("element ", i));
      }
    });
    FAIL() << "the exception was lost";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "element 77");
  }
  EXPECT_EQ(done, 300);
}

// The first range throws only when the other thread, which threw before, has gone on.
TEST(ParallelForBalanced, RethrowsTheExceptionOfTheLowestRangeThoughItComesLast) {
  const ThreadCount count(2);
  std::atomic<bool> gone_on{false};
  std::mutex mutex;
  std::set<std::thread::id> thrown;
  try {
    parallel_for_balanced(0, 1000, 1, [&](int64_t first, int64_t) {
      while (first == 0 && !gone_on) std::this_thread::yield();
      const std::lock_guard lock(mutex);
      if (first != 0 && !thrown.insert(std::this_thread::get_id()).second) {
        gone_on = true;
        return;
      }
      throw Error(str("range ", first));
    });
    FAIL() << "the exception was lost";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "range 0");
  }
}

TEST(ParallelForBalanced, CoversMoreElementsThanFit32Bits) {
  const ThreadCount count(2);
  std::atomic<int64_t> covered{0};
  constexpr int64_t kLength = (int64_t{1} << 34) + 5;
  parallel_for_balanced(0, kLength, 1 << 20, [&](int64_t first, int64_t last) { covered += last - first; });
  EXPECT_EQ(covered, kLength);
}

TEST(ParallelFor, UsesTheRequestedNumberOfThreadsAndAFixedPartition) {
  const ThreadCount count(4);
  const Ranges expected = {{0, 25}, {25, 50}, {50, 75}, {75, 100}};
  EXPECT_EQ(ranges_of(0, 100, 1), expected);
  EXPECT_EQ(ranges_of(0, 100, 1), expected);

  // Each range waits until all others have started, so the loop ends only if they run on different threads.
  std::atomic<int> started{0};
  parallel_for(0, 4, 1, [&](int64_t, int64_t) {
    ++started;
    while (started < 4) std::this_thread::yield();
  });
  EXPECT_EQ(started, 4);
}

TEST(ParallelFor, RethrowsTheExceptionOfTheLowestRangeAfterAllHaveEnded) {
  const ThreadCount count(4);
  std::atomic<int> ended{0};
  try {
    parallel_for(0, 4, 1, [&](int64_t first, int64_t) {
      if (first == 1 || first == 3) throw Error(str("range ", first));
      std::this_thread::yield();
      ++ended;
    });
    FAIL() << "the exception was lost";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "range 1");
  }
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(ranges_of(0, 4, 1).size(), 4u) << "the loop after a failed one";
}

TEST(ParallelFor, ExceptionOfASerialLoopReachesTheCaller) {
  const ThreadCount count(1);
  EXPECT_THROW(parallel_for(0, 9, 1, [](int64_t, int64_t) { throw std::out_of_range("x"); }), std::out_of_range);
}

TEST(ParallelFor, NestedLoopRunsOnItsCallingThread) {
  const ThreadCount count(3);
  std::atomic<int> inner{0};
  parallel_for(0, 3, 1, [&](int64_t, int64_t) {
    const std::thread::id outer = std::this_thread::get_id();
    parallel_for(0, 100, 1, [&](int64_t first, int64_t last) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      EXPECT_EQ(last - first, 100);
      ++inner;
    });
  });
  EXPECT_EQ(inner, 3);
  EXPECT_EQ(ranges_of(0, 3, 1).size(), 3u) << "the loop after a nested one";
}

TEST(ParallelFor, ConcurrentCallersEachCoverTheirOwnElements) {
  std::vector<std::vector<int>> sums(4, std::vector<int>(1000, 0));
  std::vector<std::thread> callers;
  for (std::vector<int>& sum : sums) {
    callers.emplace_back([&sum] {
      const ThreadCount count(2);
      for (int round = 0; round < 20; ++round) {
        parallel_for(0, 1000, 10, [&](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) ++sum[i];
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const std::vector<int>& sum : sums) EXPECT_EQ(sum, std::vector<int>(1000, 20));
}

TEST(ParallelFor, LoopsOfBothKindsShareTheirThreads) {
  const ThreadCount three(3);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  // Every thread has a part, since each waits for the others.
  for (const auto loop : {parallel_for, parallel_for_balanced}) {
    std::barrier all(3);
    loop(0, 3, 1, [&](int64_t, int64_t) {
      all.arrive_and_wait();
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    });
  }
  EXPECT_EQ(threads.size(), 3u);
}

TEST(ThreadCount, AppliesDuringItsLifetimeAndOnlyToItsThread) {
  EXPECT_EQ(num_threads(), available_threads());
  {
    const ThreadCount outer(3);
    EXPECT_EQ(num_threads(), 3);
    {
      const ThreadCount inner(5);
      EXPECT_EQ(num_threads(), 5);
      std::thread([] { EXPECT_EQ(num_threads(), available_threads()); }).join();
    }
    EXPECT_EQ(num_threads(), 3);
  }
  EXPECT_EQ(num_threads(), available_threads());
  EXPECT_GE(available_threads(), 1);
}

TEST(ThreadCount, CountsOutOfRangeAreErrors) {
  EXPECT_THROW(ThreadCount(0), Error);
  EXPECT_THROW(ThreadCount(-2), Error);
  EXPECT_THROW(ThreadCount(1000000), Error);
  EXPECT_EQ(num_threads(), available_threads()) << "an invalid count must not change it";
}

TEST(ComputeTeam, IsRecursive) {
  const ComputeTeam outer(2);
  {
    const ComputeTeam inner(3);
    EXPECT_EQ(num_threads(), 3);
  }
  EXPECT_EQ(num_threads(), 2);
}

TEST(ParallelFor, RangesAreEqualUpToAnElement) {
  const ThreadCount three(3);
  EXPECT_EQ(ranges_of(10, 20, 1), (Ranges{{10, 13}, {13, 16}, {16, 20}}));
  EXPECT_EQ(ranges_of(-7, 4, 1), (Ranges{{-7, -4}, {-4, 0}, {0, 4}}));
  EXPECT_EQ(ranges_of(0, 11, 4), (Ranges{{0, 5}, {5, 11}})) << "two grains fit";
  EXPECT_EQ(ranges_of(0, 12, 4), (Ranges{{0, 4}, {4, 8}, {8, 12}}));
  EXPECT_EQ(ranges_of(0, 11, 6), (Ranges{{0, 11}}));
  EXPECT_EQ(ranges_of(5, 7, 0), (Ranges{{5, 6}, {6, 7}}));
}

TEST(NumThreads, IsOneInsideALoop) {
  const ThreadCount two(2);
  std::atomic<int> calls{0};
  const auto body = [&](int64_t, int64_t) {
    EXPECT_EQ(num_threads(), 1);
    ++calls;
  };
  parallel_for(0, 2, 1, body);
  EXPECT_EQ(num_threads(), 2);
  parallel_for_balanced(0, 2, 1, body);
  EXPECT_EQ(num_threads(), 2);
  EXPECT_EQ(calls, 4);
}

// Each thread begins with half of its share.  The second waits in its first range, so that the first does all else:
// half of what is left of its own share at a time from the front, then of the other's from the back.
TEST(ParallelForBalanced, TakesHalfOfWhatIsLeftOfAShare) {
  struct Case {
    int64_t length, grain;
    std::vector<std::pair<int64_t, int64_t>> own, stolen;  // in the order of the calls
    int64_t first_of_second, last_of_second;
  };
  const Case cases[] = {{16, 1, {{0, 4}, {4, 6}, {6, 7}, {7, 8}}, {{14, 16}, {13, 14}, {12, 13}}, 8, 12},
                        {16, 3, {{0, 4}, {4, 8}}, {{12, 16}}, 8, 12},
                        {20, 2, {{0, 5}, {5, 8}, {8, 10}}, {{17, 20}, {15, 17}}, 10, 15},
                        {16, 5, {{0, 8}}, {}, 8, 16}};
  const ThreadCount two(2);
  for (const Case& c : cases) {
    std::atomic<bool> second_began{false};
    std::mutex mutex;
    std::vector<std::pair<int64_t, int64_t>> first, second;
    std::atomic<int64_t> done{0};
    const int64_t others = c.length - (c.last_of_second - c.first_of_second);
    parallel_for_balanced(0, c.length, c.grain, [&](int64_t begin, int64_t end) {
      const bool of_second = begin == c.first_of_second;
      if (of_second) second_began = true;
      while (!of_second && !second_began) std::this_thread::yield();
      while (of_second && done < others) std::this_thread::yield();
      done += end - begin;
      const std::lock_guard lock(mutex);
      (of_second ? second : first).emplace_back(begin, end);
    });
    std::vector<std::pair<int64_t, int64_t>> want = c.own;
    want.insert(want.end(), c.stolen.begin(), c.stolen.end());
    EXPECT_EQ(first, want) << c.length << " by " << c.grain;
    EXPECT_EQ(second, (std::vector<std::pair<int64_t, int64_t>>{{c.first_of_second, c.last_of_second}})) << c.length;
  }
}

TEST(ThreadCount, GoesFromOneTo1024) {
  for (const int n : {1, 2, 1023, 1024}) {
    const ThreadCount count(n);
    EXPECT_EQ(num_threads(), n);
  }
  EXPECT_ERROR(testing::error_of([] { ThreadCount(0); }), "threads", "0");
  EXPECT_ERROR(testing::error_of([] { ThreadCount(1025); }), "threads", "1025");
}

TEST(AvailableThreads, AreTheCoresThatAffinityAndQuotaAllow) {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return;  // more processors than a set holds
  EXPECT_EQ(available_threads(), std::clamp(std::min(CPU_COUNT(&set), cgroup_cpus().value_or(1024)), 1, 1024));
}

TEST(ComputeTeam, OnlyOneOfSeveralThreadsComputesAtATime) {
  std::atomic<int> inside{0}, rounds{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 3; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const ComputeTeam team(2);
        EXPECT_EQ(++inside, 1);
        std::this_thread::yield();
        --inside;
        ++rounds;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(rounds, 150);
}

TEST(ComputeTeam, OfOneThreadDoesNotWait) {
  const ComputeTeam team(2);
  int threads = 0;
  std::thread([&] {
    const ComputeTeam alone(1);
    threads = num_threads();
  }).join();
  EXPECT_EQ(threads, 1);
  EXPECT_ERROR(testing::error_of([] { ComputeTeam(0); }), "threads", "0");
}

}  // namespace
}  // namespace vitrail
