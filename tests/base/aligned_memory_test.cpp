// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/aligned_memory_internal.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace vitrail {
namespace {

size_t remainder_of(const void* memory, size_t alignment) { return reinterpret_cast<uintptr_t>(memory) % alignment; }

TEST(AlignedMemory, BeginsAtTwoCacheLinesAndLargeBlocksAtAHugePage) {
  EXPECT_EQ(kCacheLinePairBytes, 128u);
  EXPECT_EQ(kHugePageBytes, 2097152u);
  for (const size_t bytes : {0, 1, 127, 128, 129, 5000, 2097151, 2097152, 2097153, 5000000}) {
    void* blocks[4];
    for (void*& block : blocks) {  // several, since one may be aligned by chance
      block = allocate_aligned(bytes);
      ASSERT_NE(block, nullptr) << bytes;
      EXPECT_EQ(remainder_of(block, bytes >= 2097152 ? 2097152 : 128), 0u) << bytes;
      EXPECT_GE(::malloc_usable_size(block), bytes);
      std::memset(block, 0x5a, bytes);
    }
    for (void* const block : blocks) std::free(block);
  }
}

// The size is rounded up to the alignment: otherwise a large block would not end at a huge page.
TEST(AlignedMemory, EndsAtAMultipleOfItsAlignment) {
  for (const auto& [bytes, min_size] : {std::pair<size_t, size_t>{1, 128}, {129, 256}, {2097153, 4194304}}) {
    void* const block = allocate_aligned(bytes);
    EXPECT_GE(::malloc_usable_size(block), min_size) << bytes;
    std::free(block);
  }
}

// The flags of the mapping that has the address, as the kernel lists them; empty if it lists none.
std::string flags_of_mapping(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  std::ifstream file("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    unsigned long first = 0, last = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &last) == 2) inside = first <= at && at < last;
    if (inside && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

TEST(AlignedMemory, LargeBlocksAskForHugePages) {
  if (std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled").fail()) return;  // no huge pages
  void* const large = allocate_aligned(16 * kHugePageBytes);
  const std::string flags = flags_of_mapping(large);
  std::free(large);
  if (flags.empty()) return;  // a kernel that lists none
  EXPECT_NE(flags.find(" hg "), std::string::npos) << flags;
}

}  // namespace
}  // namespace vitrail
