// SPDX-License-Identifier: Apache-2.0
#pragma once
// The limits of the control group that the process is in, as containers and batch systems set them.
#include <cstdint>
#include <filesystem>
#include <optional>

namespace vitrail {

// The number of CPUs whose time the quotas of the process's cgroup and of its ancestors allow, rounded up, at least 1;
// none without a quota.  cgroups v2 (cpu.max) and v1 (cpu.cfs_quota_us); files that are missing or malformed are no
// quota.  `membership` and `root` are the system's, except in tests.
std::optional<int> cgroup_cpus(const std::filesystem::path& membership = "/proc/self/cgroup",
                               const std::filesystem::path& root = "/sys/fs/cgroup");

// The smallest memory limit of the cgroup and its ancestors in bytes, at least 1; none without a limit.  cgroups v2
// (memory.max) and v1 (memory.limit_in_bytes).
std::optional<int64_t> cgroup_memory(const std::filesystem::path& membership = "/proc/self/cgroup",
                                     const std::filesystem::path& root = "/sys/fs/cgroup");

}  // namespace vitrail
