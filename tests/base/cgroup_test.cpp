// SPDX-License-Identifier: Apache-2.0
// CPU quotas of control groups, from files as the kernel writes them (Documentation/admin-guide/cgroup-v2.rst,
// Documentation/scheduler/sched-bwc.rst).
#include "vitrail/base/cgroup_internal.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/paths.h"

namespace vitrail {
namespace {

class Cgroup : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    std::error_code error;
    std::filesystem::create_directories((folder_ / path).parent_path(), error);
    std::ofstream(folder_ / path) << text;
  }
  std::optional<int> cpus() const { return cgroup_cpus(folder_ / "membership", folder_ / "root"); }
  std::optional<int64_t> memory() const { return cgroup_memory(folder_ / "membership", folder_ / "root"); }

  const std::filesystem::path folder_ = testing::scratch_folder();
};

TEST_F(Cgroup, TheSmallestQuotaOfTheGroupAndItsAncestorsCountsRoundedUp) {
  write("membership", "0::/system.slice/job\n");
  EXPECT_EQ(cpus(), std::nullopt) << "without any file";
  write("root/system.slice/job/cpu.max", "max 100000\n");
  EXPECT_EQ(cpus(), std::nullopt);
  write("root/system.slice/job/cpu.max", "300000 100000\n");
  EXPECT_EQ(cpus(), 3);
  write("root/system.slice/cpu.max", "75000 50000\n");
  EXPECT_EQ(cpus(), 2);
  write("root/cpu.max", "10000 100000\n");
  EXPECT_EQ(cpus(), 1);
}

TEST_F(Cgroup, AContainersQuotaIsTheRootsWhereItsGroupIsNotMounted) {
  write("membership", "0::/docker/1234\n");
  write("root/cpu.max", "250000 100000\n");
  EXPECT_EQ(cpus(), 3);
}

TEST_F(Cgroup, FirstVersionHasAFileForQuotaAndPeriod) {
  write("membership", "5:memory:/job\n4:cpu,cpuacct:/job\n1:name=systemd:/other\n");
  write("root/cpu/job/cpu.cfs_quota_us", "-1\n");
  write("root/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpus(), std::nullopt);
  write("root/cpu/job/cpu.cfs_quota_us", "400000\n");
  EXPECT_EQ(cpus(), 4);
}

TEST_F(Cgroup, MalformedFilesAreNoQuota) {
  EXPECT_EQ(cpus(), std::nullopt);
  for (const char* membership : {"", "0", "0:", "0::", "::\n", "0::/../..\n"}) {
    write("membership", membership);
    for (const char* max : {"", "x", "100000", "100000 0", "-5 100000", "100000 x"}) {
      write("root/cpu.max", max);
      EXPECT_EQ(cpus(), std::nullopt) << membership << " with " << max;
    }
  }
}

TEST_F(Cgroup, QuotasAreRoundedUp) {
  write("membership", "0::/\n");
  const std::pair<const char*, std::optional<int>> cases[] = {
      {"100000 100000", 1}, {"100001 100000", 2}, {"199999 100000", 2}, {"200000 100000", 2}, {"1 100000", 1},
      {"25000 2000", 13},   {"0 100000", {}},     {"100000 0", {}},     {"100000 -1", {}},    {"-1 100000", {}}};
  for (const auto& [max, want] : cases) {
    write("root/cpu.max", max);
    EXPECT_EQ(cpus(), want) << max;
  }
}

TEST_F(Cgroup, AncestorsCountInTheFirstVersionToo) {
  write("membership", "3:cpuacct,cpu:/outer/inner\n");
  const auto quota = [&](const std::string& group, const std::string& us) {
    write("root/cpu/" + group + "cpu.cfs_quota_us", us);
    write("root/cpu/" + group + "cpu.cfs_period_us", "50000");
  };
  quota("outer/inner/", "-1");
  quota("outer/", "350000");
  EXPECT_EQ(cpus(), 7);
  quota("outer/inner/", "450000");
  EXPECT_EQ(cpus(), 7);
  quota("outer/inner/", "250000");
  EXPECT_EQ(cpus(), 5);
  quota("", "150000");
  EXPECT_EQ(cpus(), 3);
  write("root/cpu/cpu.cfs_period_us", "x");
  EXPECT_EQ(cpus(), 5);
}

TEST_F(Cgroup, OnlyTheControllerOfCpusCounts) {
  write("root/cpu/job/cpu.cfs_quota_us", "200000\n");
  write("root/cpu/job/cpu.cfs_period_us", "100000\n");
  for (const char* others : {"5:cpuset:/job\n", "5:cpuacct:/job\n", "5:xcpu:/job\n", "5:name=cpu:/job\n"}) {
    write("membership", others);
    EXPECT_EQ(cpus(), std::nullopt) << others;
  }
  for (const char* with : {"5:cpu:/job\n", "5:cpu,cpuacct:/job\n", "5:cpuacct,cpu:/job\n", "5:a,cpu,b:/job\n"}) {
    write("membership", with);
    EXPECT_EQ(cpus(), 2) << with;
  }
}

TEST_F(Cgroup, OfBothVersionsTheSmallerQuotaCounts) {
  write("membership", "9:cpu:/one\n0::/two:b\n");
  write("root/cpu/one/cpu.cfs_quota_us", "600000\n");
  write("root/cpu/one/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpus(), 6);
  write("root/two:b/cpu.max", "400000 100000\n");
  EXPECT_EQ(cpus(), 4);
  write("root/two:b/cpu.max", "800000 100000\n");
  EXPECT_EQ(cpus(), 6);
}

TEST_F(Cgroup, TheSmallestMemoryLimitOfTheGroupAndItsAncestorsCounts) {
  write("membership", "0::/system.slice/job\n");
  EXPECT_EQ(memory(), std::nullopt) << "without any file";
  write("root/system.slice/job/memory.max", "max\n");
  EXPECT_EQ(memory(), std::nullopt);
  write("root/system.slice/job/memory.max", "314572800\n");
  EXPECT_EQ(memory(), 314'572'800);
  write("root/memory.max", "104857600\n");
  EXPECT_EQ(memory(), 104'857'600);
  write("root/memory.max", "x\n");
  EXPECT_EQ(memory(), 314'572'800);
  EXPECT_EQ(cpus(), std::nullopt);
}

TEST_F(Cgroup, TheFirstVersionHasNoMemoryLimitIfItIsTheLargestNumberOfPages) {
  write("membership", "4:memory:/job\n3:cpu:/job\n");
  write("root/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(memory(), std::nullopt);
  write("root/memory/memory.limit_in_bytes", "209715200\n");
  EXPECT_EQ(memory(), 209'715'200);
  write("root/memory/job/memory.limit_in_bytes", "524288000\n");
  EXPECT_EQ(memory(), 209'715'200);
}

}  // namespace
}  // namespace vitrail
