// SPDX-License-Identifier: Apache-2.0
// Parallel loops on whichever back end was built: coverage, fixed and shifting division, exceptions, nesting, thread
// counts.
#include "vitrail/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "vitrail/base/error.h"

namespace vitrail {
namespace {

using Pieces = std::set<std::pair<int64_t, int64_t>>;

Pieces pieces_of(int64_t begin, int64_t end, int64_t grain) {
  std::mutex mutex;
  Pieces pieces;
  parallel_for(begin, end, grain, [&](int64_t first, int64_t last) {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(pieces.emplace(first, last).second);
  });
  return pieces;
}

TEST(ParallelFor, PiecesCoverTheRangeOnceAndAreAtLeastAGrainLong) {
  for (const int threads : {1, 2, 3, 7}) {
    const ThreadCount count(threads);
    for (const int64_t length : {1, 2, 5, 16, 17, 1000}) {
      for (const int64_t grain : {-1, 0, 1, 4, 16, 2000}) {
        const int64_t begin = -3;
        int64_t next = begin;
        const Pieces pieces = pieces_of(begin, begin + length, grain);
        EXPECT_LE(pieces.size(), static_cast<size_t>(threads));
        for (const auto& [first, last] : pieces) {
          EXPECT_EQ(first, next);
          EXPECT_LT(first, last);
          EXPECT_TRUE(pieces.size() == 1 || last - first >= grain) << first << " to " << last;
          next = last;
        }
        EXPECT_EQ(next, begin + length) << length << " by " << grain << " on " << threads;
      }
    }
  }
}

TEST(ParallelFor, EmptyRangeCallsNothing) {
  parallel_for(5, 5, 1, [](int64_t, int64_t) { FAIL(); });
  parallel_for(5, 4, 1, [](int64_t, int64_t) { FAIL(); });
  parallel_for_balanced(5, 5, 1, [](int64_t, int64_t) { FAIL(); });
  parallel_for_balanced(5, 4, 1, [](int64_t, int64_t) { FAIL(); });
}

TEST(ParallelForBalanced, PartsCoverTheRangeOnceAndAreAtLeastAGrainLong) {
  for (const int threads : {1, 2, 3, 7}) {
    const ThreadCount count(threads);
    for (const int64_t length : {1, 2, 5, 16, 17, 1000}) {
      for (const int64_t grain : {-1, 0, 1, 4, 16, 2000}) {
        std::mutex mutex;
        Pieces parts;
        parallel_for_balanced(-3, -3 + length, grain, [&](int64_t first, int64_t last) {
          const std::lock_guard lock(mutex);
          EXPECT_TRUE(parts.emplace(first, last).second);
        });
        int64_t next = -3;
        for (const auto& [first, last] : parts) {
          EXPECT_EQ(first, next);
          EXPECT_LT(first, last);
          EXPECT_TRUE(parts.size() == 1 || last - first >= grain) << first << " to " << last;
          next = last;
        }
        EXPECT_EQ(next, -3 + length) << length << " by " << grain << " on " << threads;
      }
    }
  }
}

// The part that begins at 0 ends when all others have been done: those of its own thread too.
TEST(ParallelForBalanced, WhatAThreadCannotGetToIsDoneByOthers) {
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

TEST(ParallelForBalanced, RethrowsTheExceptionThatStandsFirst) {
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

TEST(ParallelForBalanced, ARangeLongerThan32BitsIsCoveredToo) {
  const ThreadCount count(2);
  std::atomic<int64_t> covered{0};
  constexpr int64_t kLength = (int64_t{1} << 34) + 5;
  parallel_for_balanced(0, kLength, 1 << 20, [&](int64_t first, int64_t last) { covered += last - first; });
  EXPECT_EQ(covered, kLength);
}

TEST(ParallelFor, UsesAsManyThreadsAsAskedForAndDividesTheSameWayAgain) {
  const ThreadCount count(4);
  const Pieces expected = {{0, 25}, {25, 50}, {50, 75}, {75, 100}};
  EXPECT_EQ(pieces_of(0, 100, 1), expected);
  EXPECT_EQ(pieces_of(0, 100, 1), expected);

  // Each piece waits for all the others to have begun: it ends only if they run on different threads.
  std::atomic<int> begun{0};
  parallel_for(0, 4, 1, [&](int64_t, int64_t) {
    ++begun;
    while (begun < 4) std::this_thread::yield();
  });
  EXPECT_EQ(begun, 4);
}

TEST(ParallelFor, RethrowsTheLowestPiecesExceptionAfterAllHaveEnded) {
  const ThreadCount count(4);
  std::atomic<int> ended{0};
  try {
    parallel_for(0, 4, 1, [&](int64_t first, int64_t) {
      if (first == 1 || first == 3) throw Error(str("piece ", first));
      std::this_thread::yield();
      ++ended;
    });
    FAIL() << "the exception was lost";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "piece 1");
  }
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(pieces_of(0, 4, 1).size(), 4u) << "the loop after a failed one";
}

TEST(ParallelFor, ExceptionOfASinglePieceReachesTheCaller) {
  const ThreadCount count(1);
  EXPECT_THROW(parallel_for(0, 9, 1, [](int64_t, int64_t) { throw std::out_of_range("x"); }), std::out_of_range);
}

TEST(ParallelFor, LoopInsideALoopRunsOnTheThreadThatItIsOn) {
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
  EXPECT_EQ(pieces_of(0, 3, 1).size(), 3u) << "the loop after a nested one";
}

TEST(ParallelFor, ConcurrentCallersEachCoverTheirOwnRange) {
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

TEST(ThreadCount, HoldsForItsLifeAndOnlyOnItsThread) {
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

TEST(ThreadCount, CountsThatNoMachineHasAreErrors) {
  EXPECT_THROW(ThreadCount(0), Error);
  EXPECT_THROW(ThreadCount(-2), Error);
  EXPECT_THROW(ThreadCount(1000000), Error);
  EXPECT_EQ(num_threads(), available_threads()) << "a refused count changes nothing";
}

TEST(ComputeTeam, ACallerThatHasItGetsItAgain) {
  const ComputeTeam outer(2);
  {
    const ComputeTeam inner(3);
    EXPECT_EQ(num_threads(), 3);
  }
  EXPECT_EQ(num_threads(), 2);
}

}  // namespace
}  // namespace vitrail
