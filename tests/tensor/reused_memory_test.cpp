// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tensor/reused_memory.h"

#include <gtest/gtest.h>

#include "vitrail/tensor/tensor.h"

namespace vitrail {
namespace {

constexpr int64_t kLarge = 1 << 18;  // floats: a MiB

TEST(ReusedMemory, HandsABlockOutAgain) {
  const ReusedMemory scope;
  const std::byte* const first = Tensor::empty({kLarge}).raw();
  EXPECT_EQ(Tensor::empty({kLarge}).raw(), first);
  EXPECT_EQ(Tensor::empty({kLarge - 5}).raw(), first) << "a little smaller fits too";
  EXPECT_NE(Tensor::empty({2 * kLarge}).raw(), first);
  const Tensor a = Tensor::empty({kLarge}), b = Tensor::empty({kLarge});
  EXPECT_NE(a.raw(), b.raw());
}

TEST(ReusedMemory, GivesEverythingBackWithTheLastUser) {
  {
    const ReusedMemory outer;
    {
      const ReusedMemory inner;
      Tensor::empty({kLarge});
    }
    EXPECT_GE(ReusedMemory::idle_bytes(), 4u * kLarge);
  }
  EXPECT_EQ(ReusedMemory::idle_bytes(), 0u);
}

TEST(ReusedMemory, TensorsMayOutliveIt) {
  Tensor kept, before = Tensor::zeros({kLarge});
  {
    const ReusedMemory scope;
    kept = Tensor::full({kLarge}, 3);
    before = {};
  }
  EXPECT_EQ(kept.data<float>()[kLarge - 1], 3);
  kept = {};
  EXPECT_EQ(ReusedMemory::idle_bytes(), 0u);
}

TEST(ReusedMemory, SmallBlocksAreNotKept) {
  const ReusedMemory scope;
  Tensor::empty({16});
  EXPECT_EQ(ReusedMemory::idle_bytes(), 0u);
}

}  // namespace
}  // namespace vitrail
