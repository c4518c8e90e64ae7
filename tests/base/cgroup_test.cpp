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

}  // namespace
}  // namespace vitrail
