// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/isa/aligned_array_internal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
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

bool share_a_block(const std::shared_ptr<void>& a, const std::shared_ptr<void>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

// From 64 KiB to 2 MiB: smaller ones are malloc's, larger ones would leave much of a block of 8 MiB unused.
TEST(AlignedArray, OnlyAllocationsOfMiddleSizesShareABlock) {
  const auto shared = [](size_t bytes) {
    std::vector<std::shared_ptr<void>> parts;  // one of three pairs is within a block, wherever it ends
    for (int i = 0; i < 4; ++i) parts.push_back(allocate_in_shared_block(bytes));
    return share_a_block(parts[0], parts[1]) || share_a_block(parts[1], parts[2]) || share_a_block(parts[2], parts[3]);
  };
  EXPECT_FALSE(shared((64 << 10) - 1));
  EXPECT_TRUE(shared(64 << 10));
  EXPECT_TRUE(shared(2 << 20));
  EXPECT_FALSE(shared((2 << 20) + 1));
}

TEST(AlignedArray, PartsOfABlockFollowEachOtherAtMultiplesOf128Bytes) {
  constexpr size_t kBytes = (64 << 10) + 1, kRounded = (64 << 10) + 128;
  std::vector<std::shared_ptr<void>> parts;
  for (int i = 0; i < 300; ++i) parts.push_back(allocate_in_shared_block(kBytes));
  int followers = 0;
  std::vector<int> sizes{1};  // parts of each block, but for other users of the first and the last one
  for (size_t i = 1; i < parts.size(); ++i) {
    if (!share_a_block(parts[i - 1], parts[i])) {
      sizes.push_back(1);
      continue;
    }
    ++sizes.back();
    followers += static_cast<std::byte*>(parts[i].get()) == static_cast<std::byte*>(parts[i - 1].get()) + kRounded;
  }
  EXPECT_EQ(followers, 300 - static_cast<int>(sizes.size()));
  ASSERT_GE(sizes.size(), 3u);
  EXPECT_EQ(sizes[1], static_cast<int>((8 << 20) / kRounded));
}

TEST(AlignedArray, ZeroWeightsAreZeroWhateverTheMemoryHeld) {
  for (int round = 0; round < 20; ++round) {
    for (const int64_t count : {int64_t{1000}, int64_t{40'000}}) {
      std::fill_n(weight_array<float>(count).get(), count, 7.0f);
      const AlignedArray<float> zeros = zero_weights<float>(count);
      EXPECT_EQ(std::count(zeros.get(), zeros.get() + count, 0.0f), count);
    }
  }
}

}  // namespace
}  // namespace vitrail::kernels
