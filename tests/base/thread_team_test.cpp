// SPDX-License-Identifier: Apache-2.0
// Threads of a team run the tasks, sleep when there are none, and never hold up a loop that the leader can finish.
#include "vitrail/base/thread_team_internal.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

namespace vitrail {
namespace {

using namespace std::chrono_literals;

// The CPU time of all threads of this process, in seconds.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

int64_t voluntary_context_switches() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

// Runs `count` tasks that all wait for each other, so that each has a thread of its own.
void meet(ThreadTeam& team, int64_t count) {
  std::atomic<int64_t> started{0};
  team.run(count, [&](int64_t) {
    ++started;
    while (started < count) std::this_thread::yield();
  });
}

TEST(ThreadTeam, CallsEachTaskOnceForAnyCount) {
  ThreadTeam team;
  for (const int64_t count : {1, 2, 7, 3, 1, 9, 2}) {
    for (int round = 0; round < 200; ++round) {
      std::vector<std::atomic<int>> calls(static_cast<size_t>(count));
      team.run(count, [&](int64_t i) { ++calls[i]; });
      for (const auto& number : calls) ASSERT_EQ(number, 1) << count;
    }
  }
  EXPECT_EQ(team.size(), 9);
}

TEST(ThreadTeam, EachTaskHasItsOwnThreadWhichStaysTheSame) {
  ThreadTeam team;
  std::set<std::vector<std::thread::id>> seen;
  for (int round = 0; round < 5; ++round) {
    std::vector<std::thread::id> threads(3);
    std::atomic<int> started{0};
    team.run(3, [&](int64_t i) {
      threads[i] = std::this_thread::get_id();
      ++started;
      while (started < 3) std::this_thread::yield();
    });
    EXPECT_EQ(threads[0], std::this_thread::get_id());
    seen.insert(threads);
  }
  EXPECT_EQ(seen.size(), 1u);
}

// Between loops, after a loop, and while the leader has the longest task.
TEST(ThreadTeam, WorkersWithoutATaskSleep) {
  ThreadTeam team;
  meet(team, 4);
  const double before = cpu_seconds();
  std::this_thread::sleep_for(500ms);
  team.run(4, [](int64_t i) { std::this_thread::sleep_for(i == 0 ? 500ms : 0ms); });
  EXPECT_LT(cpu_seconds() - before, 0.1) << "three spinning workers would take up to 3 s, on one core up to 1 s";
}

TEST(ThreadTeam, TheLeaderSleepsWhileAWorkerHasTheLongestTask) {
  ThreadTeam team;
  meet(team, 2);
  const double before = cpu_seconds();
  std::atomic<int> started{0};
  team.run(2, [&](int64_t i) {
    ++started;
    while (started < 2) std::this_thread::yield();  // so that the leader cannot take the worker's task
    if (i == 1) std::this_thread::sleep_for(500ms);
  });
  EXPECT_LT(cpu_seconds() - before, 0.1);
}

TEST(ThreadTeam, WakesWorkersThatSleep) {
  ThreadTeam team;
  for (int round = 0; round < 20; ++round) {
    meet(team, 3);
    std::this_thread::sleep_for(2ms);
  }
  EXPECT_GE(voluntary_context_switches(), 20);
}

TEST(ThreadTeam, TheLeaderRunsTheTasksThatNoWorkerHasBegun) {
  ThreadTeam team;
  meet(team, 8);
  std::this_thread::sleep_for(2ms);  // the workers sleep
  int by_leader = 0;
  const std::thread::id leader = std::this_thread::get_id();
  for (int round = 0; round < 1000; ++round) {
    std::atomic<int> on_leader{0};
    team.run(8, [&](int64_t) { on_leader += std::this_thread::get_id() == leader; });
    EXPECT_GE(on_leader, 1);
    by_leader += on_leader > 1;
  }
  EXPECT_GT(by_leader, 0) << "empty tasks end before seven sleeping workers have begun";
}

TEST(ThreadTeam, StartsItsWorkersWhenALoopNeedsThem) {
  ThreadTeam team;
  EXPECT_EQ(team.size(), 1);
  team.run(1, [](int64_t) {});
  EXPECT_EQ(team.size(), 1);
  team.run(3, [](int64_t) {});
  EXPECT_EQ(team.size(), 3);
  team.run(2, [](int64_t) {});
  EXPECT_EQ(team.size(), 3);
}

}  // namespace
}  // namespace vitrail
