// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/cgroup_internal.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "vitrail/base/error.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;

constexpr double kNone = 1e18;  // above any quota, and below what cgroups v1 has for none: 2⁶³ less a page

// Quota and period in µs.  No quota is "max" in v2, which is no number, and -1 in v1.
double cpus_of(std::istream& quota, std::istream& period) {
  double quota_us = 0, period_us = 0;
  if (!(quota >> quota_us) || !(period >> period_us) || quota_us <= 0 || period_us <= 0) return kNone;
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

double bytes_of(const fs::path& file) {
  double bytes = 0;
  return std::ifstream(file) >> bytes && bytes > 0 ? bytes : kNone;  // no limit is "max" in v2
}

double memory_v2(const fs::path& group) { return bytes_of(group / "memory.max"); }

double memory_v1(const fs::path& group) { return bytes_of(group / "memory.limit_in_bytes"); }

// What a group may use of a controller.
struct Resource {
  const char* controller;  // in v1, also the folder
  double (*v1)(const fs::path& group);
  double (*v2)(const fs::path& group);
};

// The smallest limit from a group up to the root of its hierarchy.  In a container, the group can be outside of what is
// mounted at the root; its files are then missing, and the root's are the container's.
double smallest_limit(double (*limit)(const fs::path&), const fs::path& hierarchy, const std::string& group) {
  double smallest = limit(hierarchy);
  fs::path path = hierarchy;
  for (const fs::path& part : fs::path(group).relative_path()) smallest = std::min(smallest, limit(path /= part));
  return smallest;
}

// kNone or more: none.
double limit_of(const Resource& resource, const fs::path& membership, const fs::path& root) {
  double smallest = kNone;
  std::ifstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "NUMBER:CONTROLLERS:GROUP", v2 without controllers
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",",
                      group = line.substr(second + 1);
    if (controllers == ",,") smallest = std::min(smallest, smallest_limit(resource.v2, root, group));
    if (controllers.find(str(",", resource.controller, ",")) == std::string::npos) continue;
    smallest = std::min(smallest, smallest_limit(resource.v1, root / resource.controller, group));
  }
  return smallest;
}

}  // namespace

std::optional<int> cgroup_cpus(const fs::path& membership, const fs::path& root) {
  const double cpus = limit_of({"cpu", cpus_v1, cpus_v2}, membership, root);
  if (cpus >= kNone) return std::nullopt;
  return std::max(1, static_cast<int>(std::ceil(cpus)));
}

std::optional<int64_t> cgroup_memory(const fs::path& membership, const fs::path& root) {
  const double bytes = limit_of({"memory", memory_v1, memory_v2}, membership, root);
  if (bytes >= kNone) return std::nullopt;
  return std::max(int64_t{1}, static_cast<int64_t>(bytes));
}

}  // namespace vitrail
