// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/cgroup_internal.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

namespace vitrail {
namespace {

namespace fs = std::filesystem;

constexpr double kNoQuota = 1e6;

// Quota and period in µs.  No quota is "max" in v2, which is no number, and -1 in v1.
double cpus_of(std::istream& quota, std::istream& period) {
  double quota_us = 0, period_us = 0;
  if (!(quota >> quota_us) || !(period >> period_us) || quota_us <= 0 || period_us <= 0) return kNoQuota;
  return quota_us / period_us;
}

double cpus_v2(const fs::path& group) {
  std::ifstream max(group / "cpu.max");  // "QUOTA PERIOD"
  return cpus_of(max, max);
}

double cpus_v1(const fs::path& group) {
  std::ifstream quota(group / "cpu.cfs_quota_us"), period(group / "cpu.cfs_period_us");
  return cpus_of(quota, period);
}

// The smallest quota from a group up to the root of its hierarchy.  In a container, the group can be outside of what is
// mounted at the root; its files are then missing, and the root's are the container's.
double smallest_quota(double (*cpus)(const fs::path&), const fs::path& hierarchy, const std::string& group) {
  double smallest = cpus(hierarchy);
  fs::path path = hierarchy;
  for (const fs::path& part : fs::path(group).relative_path()) smallest = std::min(smallest, cpus(path /= part));
  return smallest;
}

}  // namespace

std::optional<int> cgroup_cpus(const fs::path& membership, const fs::path& root) {
  double smallest = kNoQuota;
  std::ifstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "NUMBER:CONTROLLERS:GROUP", v2 without controllers
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",",
                      group = line.substr(second + 1);
    if (controllers == ",,") smallest = std::min(smallest, smallest_quota(cpus_v2, root, group));
    if (controllers.find(",cpu,") == std::string::npos) continue;
    smallest = std::min(smallest, smallest_quota(cpus_v1, root / "cpu", group));
  }
  if (smallest == kNoQuota) return std::nullopt;
  return std::max(1, static_cast<int>(std::ceil(smallest)));
}

}  // namespace vitrail
