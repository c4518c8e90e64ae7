// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/cache_size_internal.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace vitrail {

size_t largest_cache_bytes(const std::filesystem::path& folder) {
  constexpr int kMaxCaches = 8;
  size_t largest = 0;
  for (int index = 0; index < kMaxCaches; ++index) {
    std::ifstream file(folder / ("index" + std::to_string(index)) / "size");  // "32768K"
    size_t size = 0;
    char unit = 0;
    if (!(file >> size)) continue;
    file >> unit;
    const int shift = unit == 'K' ? 10 : unit == 'M' ? 20 : 0;
    largest = std::max(largest, size << shift);
  }
  return largest > 0 ? largest : size_t{32} << 20;
}

int first_level_cache_ways() {
  constexpr int kUsual = 8;
#ifdef _SC_LEVEL1_DCACHE_ASSOC
  static const long ways = sysconf(_SC_LEVEL1_DCACHE_ASSOC);
  if (ways > 0) return static_cast<int>(ways);
#endif
  return kUsual;
}

size_t last_level_cache_bytes() {
  static const size_t bytes = largest_cache_bytes("/sys/devices/system/cpu/cpu0/cache");
  return bytes;
}

}  // namespace vitrail
