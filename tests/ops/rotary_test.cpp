// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/rotary.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/golden.h"
#include "vitrail/base/error.h"

namespace vitrail::ops {
namespace {

TEST(RotaryTable, HasTheCosinesThenTheSines) {
  const Tensor angles = Tensor::from<double>({2, 2}, {0, 1, 2, 3});
  const Tensor want = Tensor::from<double>(
      {2, 4}, {1, std::cos(1), 0, std::sin(1), std::cos(2), std::cos(3), std::sin(2), std::sin(3)});
  EXPECT_TRUE(testing::close(rotary_table(angles), want, 1e-15));
  EXPECT_TRUE(testing::close(rotary_table(angles.to(DType::f32)), want, 1e-7));
}

// One head of 4 and two tokens; the second is rotated by 90 and by 180 degrees.
TEST(Rotary, RotatesPairsOfQueriesAndKeysOfPatches) {
  const Tensor qkv =
      Tensor::from<double>({1, 2, 12}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const Tensor table = Tensor::from<double>({1, 1, 1, 4}, {0, -1, 1, 0});
  const Tensor halves = Tensor::from<double>(
      {1, 2, 12}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, -3, -2, 1, -4, -7, -6, 5, -8, 9, 10, 11, 12});
  const Tensor interleaved = Tensor::from<double>(
      {1, 2, 12}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, -2, 1, -3, -4, -6, 5, -7, -8, 9, 10, 11, 12});
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    const Tensor x = qkv.to(dtype);
    EXPECT_TRUE(testing::close(rotary(x, table, 1, RotaryPairs::halves), halves, 0));
    EXPECT_TRUE(testing::close(rotary(x, table, 1, RotaryPairs::interleaved), interleaved, 0));
    EXPECT_EQ(rotary(x, table, 1, RotaryPairs::halves).dtype(), dtype);
  }
}

TEST(Rotary, ATableMayDifferBySampleAndHead) {
  const Tensor qkv = Tensor::randn({2, 3, 24}, 1, DType::f64);  // 2 heads of 4
  const Tensor table = rotary_table(Tensor::randn({2, 2, 2, 2}, 2, DType::f64));
  const Tensor rotated = rotary(qkv, table, 2, RotaryPairs::halves);
  for (int64_t sample = 0; sample < 2; ++sample) {
    for (int64_t head = 0; head < 2; ++head) {
      const auto part = [&](const Tensor& t) {  // q, k and v of one head of one sample
        return t.narrow(0, sample, 1).view({1, 3, 3, 2, 4}).select(3, head).reshape({1, 3, 12});
      };
      const Tensor own = table.narrow(0, sample, 1).narrow(1, head, 1);
      EXPECT_TRUE(testing::close(part(rotated), rotary(part(qkv), own, 1, RotaryPairs::halves), 0));
    }
  }
}

TEST(Rotary, RefusesShapesThatDoNotMatch) {
  const Tensor qkv = Tensor::zeros({2, 3, 24});
  const auto rotate = [&](const Shape& table, int64_t heads) {
    return rotary(qkv, Tensor::zeros(table), heads, RotaryPairs::halves);
  };
  EXPECT_NO_THROW(rotate({1, 1, 3, 4}, 2));
  EXPECT_THROW(rotate({1, 1, 4, 4}, 2), Error) << "more rows than tokens";
  EXPECT_THROW(rotate({3, 1, 3, 4}, 2), Error) << "another batch";
  EXPECT_THROW(rotate({1, 3, 3, 4}, 2), Error) << "another number of heads";
  EXPECT_THROW(rotate({1, 1, 3, 8}, 2), Error) << "another width";
  EXPECT_THROW(rotate({1, 1, 3, 4}, 5), Error) << "heads that do not divide";
}

TEST(Rotary, RefusesAnOddWidthOfHeads) {
  EXPECT_THROW(rotary(Tensor::zeros({1, 2, 18}), Tensor::zeros({1, 1, 2, 3}), 2, RotaryPairs::halves), Error);
  EXPECT_THROW(rotary(Tensor::zeros({1, 2, 18}), Tensor::zeros({2, 3}), 2, RotaryPairs::halves), Error);
  EXPECT_THROW(rotary_table(Tensor::zeros({})), Error);
}

TEST(Rotary, OfSixteenBitAnglesHasTheirDtype) {
  const Tensor angles = Tensor::from<double>({1, 1, 2, 1}, {0.5, 2});
  for (const DType dtype : {DType::bf16, DType::f16}) EXPECT_EQ(rotary_table(angles.to(dtype)).dtype(), dtype);
  EXPECT_EQ(rotary_table(angles).shape(), (Shape{1, 1, 2, 2}));
}

}  // namespace
}  // namespace vitrail::ops
