// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/isa/aligned_array_internal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace vitrail::kernels {
namespace {

bool begins_at_a_multiple_of(const void* memory, size_t alignment) {
  return reinterpret_cast<uintptr_t>(memory) % alignment == 0;
}

TEST(AlignedArray, BeginsAtLinesWhateverItsSize) {
  for (int64_t count : {0, 1, 31, 1000, 20'000, 100'001, 600'000, 3'000'000}) {
    EXPECT_TRUE(begins_at_a_multiple_of(aligned_array<float>(count).get(), 128)) << count;
    EXPECT_TRUE(begins_at_a_multiple_of(weight_array<float>(count).get(), 128)) << count;
  }
}

TEST(AlignedArray, LargeOnesBeginAtHugePages) {
  EXPECT_TRUE(begins_at_a_multiple_of(aligned_array<float>(1 << 20).get(), kHugePageBytes));
}

// Arrays in shared blocks, more than one block holds, from two threads: each keeps what was written to it.
TEST(AlignedArray, WeightsDoNotOverlapAndOutliveTheirNeighbours) {
  constexpr int64_t kFloats = 40'001;  // 160 kB: about fifty fit in a block
  std::vector<AlignedArray<float>> arrays(160);
  auto fill = [&](size_t first) {
    for (size_t i = first; i < arrays.size(); i += 2) {
      arrays[i] = weight_array<float>(kFloats);
      std::fill_n(arrays[i].get(), kFloats, static_cast<float>(i));
    }
  };
  std::thread other(fill, 1);
  fill(0);
  other.join();
  for (size_t i = 0; i < arrays.size(); i += 3) arrays[i].reset();
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (!arrays[i]) continue;
    for (int64_t k = 0; k < kFloats; ++k) ASSERT_EQ(arrays[i][k], static_cast<float>(i));
  }
}

}  // namespace
}  // namespace vitrail::kernels
