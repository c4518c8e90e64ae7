// SPDX-License-Identifier: Apache-2.0
// Cache sizes, from files as the kernel writes them (Documentation/ABI/testing/sysfs-devices-system-cpu).
#include "vitrail/base/cache_size_internal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/paths.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;

void write_cache(const fs::path& folder, int index, const std::string& size) {
  const fs::path cache = folder / ("index" + std::to_string(index));
  std::error_code error;
  fs::create_directories(cache, error);
  std::ofstream(cache / "size") << size << '\n';
}

TEST(CacheSize, IsThatOfTheLargestCache) {
  const fs::path folder = testing::scratch_folder();
  write_cache(folder, 0, "32K");
  write_cache(folder, 2, "1024K");
  EXPECT_EQ(largest_cache_bytes(folder), size_t{1} << 20);
  write_cache(folder, 3, "16M");
  EXPECT_EQ(largest_cache_bytes(folder), size_t{16} << 20);
  write_cache(folder, 4, "20000000");
  EXPECT_EQ(largest_cache_bytes(folder), 20'000'000u);
}

TEST(CacheSize, HasADefaultWithoutUsableFiles) {
  const fs::path folder = testing::scratch_folder();
  EXPECT_EQ(largest_cache_bytes(folder), size_t{32} << 20);
  write_cache(folder, 0, "unknown");
  EXPECT_EQ(largest_cache_bytes(folder), size_t{32} << 20);
  EXPECT_GT(last_level_cache_bytes(), 0u);
  EXPECT_GT(first_level_cache_ways(), 0);
}

// The kernel lists few caches: the eight from index0 on are read.
TEST(CacheSize, CountsEightCaches) {
  const fs::path folder = testing::scratch_folder();
  write_cache(folder, 0, "48K");
  write_cache(folder, 8, "512M");
  EXPECT_EQ(largest_cache_bytes(folder), 49152u);
  write_cache(folder, 7, "3M");
  EXPECT_EQ(largest_cache_bytes(folder), 3145728u);
  write_cache(folder, 1, "4G");  // a unit that no kernel writes
  EXPECT_EQ(largest_cache_bytes(folder), 3145728u);
}

TEST(CacheSize, OfZeroIsNone) {
  const fs::path folder = testing::scratch_folder();
  write_cache(folder, 0, "0K");
  EXPECT_EQ(largest_cache_bytes(folder), 33554432u);
  write_cache(folder, 1, "1");
  EXPECT_EQ(largest_cache_bytes(folder), 1u);
}

TEST(CacheSize, OfTheMachineIsThatOfItsFirstProcessor) {
  EXPECT_EQ(last_level_cache_bytes(), largest_cache_bytes("/sys/devices/system/cpu/cpu0/cache"));
#ifdef _SC_LEVEL1_DCACHE_ASSOC
  const long ways = ::sysconf(_SC_LEVEL1_DCACHE_ASSOC);
  EXPECT_EQ(first_level_cache_ways(), ways > 0 ? ways : 8);
#endif
}

}  // namespace
}  // namespace vitrail
