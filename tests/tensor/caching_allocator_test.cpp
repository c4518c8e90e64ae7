// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tensor/caching_allocator.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace vitrail
