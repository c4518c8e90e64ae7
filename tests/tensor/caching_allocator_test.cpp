// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tensor/caching_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail {
namespace {

constexpr int64_t kLarge = 1 << 18;  // floats: a MiB

TEST(CachingAllocator, ReusesFreedBlocks) {
  const CachingAllocatorScope scope;
  const std::byte* const first = Tensor::empty({kLarge}).raw();
  EXPECT_EQ(Tensor::empty({kLarge}).raw(), first);
  EXPECT_EQ(Tensor::empty({kLarge - 5}).raw(), first) << "a slightly smaller block fits";
  EXPECT_NE(Tensor::empty({2 * kLarge}).raw(), first);
  const Tensor a = Tensor::empty({kLarge}), b = Tensor::empty({kLarge});
  EXPECT_NE(a.raw(), b.raw());
}

TEST(CachingAllocator, FreesTheCacheWithTheLastScope) {
  {
    const CachingAllocatorScope outer;
    {
      const CachingAllocatorScope inner;
      Tensor::empty({kLarge});
    }
    EXPECT_GE(CachingAllocatorScope::cached_bytes(), 4u * kLarge);
  }
  EXPECT_EQ(CachingAllocatorScope::cached_bytes(), 0u);
}

TEST(CachingAllocator, TensorsMayOutliveTheScope) {
  Tensor kept, before = Tensor::zeros({kLarge});
  {
    const CachingAllocatorScope scope;
    kept = Tensor::full({kLarge}, 3);
    before = {};
  }
  EXPECT_EQ(kept.data<float>()[kLarge - 1], 3);
  kept = {};
  EXPECT_EQ(CachingAllocatorScope::cached_bytes(), 0u);
}

TEST(CachingAllocator, SmallBlocksAreNotCached) {
  const CachingAllocatorScope scope;
  Tensor::empty({16});
  EXPECT_EQ(CachingAllocatorScope::cached_bytes(), 0u);
}

TEST(CachingAllocator, CountsTheBlocksThatAreNotInUse) {
  const CachingAllocatorScope scope;
  Tensor a = Tensor::empty({kLarge}), b = Tensor::empty({kLarge});
  EXPECT_EQ(CachingAllocatorScope::cached_bytes(), 0u);
  a = {};
  const size_t one = CachingAllocatorScope::cached_bytes();
  EXPECT_GE(one, 4u * kLarge);
  b = {};
  EXPECT_EQ(CachingAllocatorScope::cached_bytes(), 2 * one);
  a = Tensor::empty({kLarge});
  EXPECT_EQ(CachingAllocatorScope::cached_bytes(), one);
  b = Tensor::empty({kLarge});
  EXPECT_EQ(CachingAllocatorScope::cached_bytes(), 0u);
}

// A block of the cache must have the bytes of every request that it serves.
TEST(CachingAllocator, BlocksHoldWhatIsWrittenToThem) {
  const CachingAllocatorScope scope;
  for (const int64_t bytes : {65535, 65536, 65537, 73728, 73729, 81919, 81920, 131071, 131072, 131073, 1 << 20}) {
    for (int round = 0; round < 3; ++round) {
      std::vector<Tensor> tensors;
      for (int i = 0; i < 3; ++i) tensors.push_back(Tensor::full({bytes}, 10 * round + i, DType::u8));
      for (int i = 0; i < 3; ++i) {
        const uint8_t* const data = tensors[static_cast<size_t>(i)].data<uint8_t>();
        ASSERT_EQ(std::count(data, data + bytes, static_cast<uint8_t>(10 * round + i)), bytes);
      }
    }
  }
}

// Blocks from 64 KiB on are kept, rounded up to an eighth of the power of two below their size.
TEST(CachingAllocator, KeepsBlocksOfRoundedSizes) {
  for (const auto& [bytes, kept] : {std::pair<int64_t, size_t>{1, 0},
                                    {65535, 0},
                                    {65536, 65536},
                                    {65537, 73728},
                                    {73728, 73728},
                                    {73729, 81920},
                                    {131071, 131072},
                                    {131072, 131072},
                                    {131073, 147456},
                                    {1 << 20, 1 << 20},
                                    {(1 << 20) + 1, (1 << 20) + (1 << 17)}}) {
    const CachingAllocatorScope scope;
    Tensor::empty({bytes}, DType::u8);
    EXPECT_EQ(CachingAllocatorScope::cached_bytes(), kept) << bytes;
  }
}

TEST(CachingAllocator, IsTheDefaultWhileAScopeExists) {
  EXPECT_EQ(caching_allocator(), nullptr);
  Allocator* const plain = &default_allocator();
  {
    const CachingAllocatorScope scope;
    ASSERT_NE(caching_allocator(), nullptr);
    EXPECT_EQ(&default_allocator(), caching_allocator());
    EXPECT_NE(&default_allocator(), plain);
  }
  EXPECT_EQ(caching_allocator(), nullptr);
  EXPECT_EQ(&default_allocator(), plain);
}

// Its blocks were freed with the scope before.
TEST(CachingAllocator, ASecondScopeBeginsWithoutBlocks) {
  for (int round = 0; round < 3; ++round) {
    const CachingAllocatorScope scope;
    EXPECT_EQ(CachingAllocatorScope::cached_bytes(), 0u);
    Tensor large = Tensor::full({kLarge}, round);
    EXPECT_EQ(CachingAllocatorScope::cached_bytes(), 0u) << "nothing is taken out of the cache";
    large = {};
    EXPECT_EQ(CachingAllocatorScope::cached_bytes(), 4u * kLarge);
  }
}

}  // namespace
}  // namespace vitrail
