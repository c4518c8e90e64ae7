// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/tokens.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/golden.h"
#include "vitrail/base/error.h"
#include "vitrail/ops/elementwise.h"

namespace vitrail::ops {
namespace {

TEST(Cat, ConcatenatesAnyAxisAndDtype) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i64, DType::u8, DType::boolean}) {
    const Tensor a = Tensor::full({2, 1, 3}, 1, dtype), b = Tensor::zeros({2, 4, 3}, dtype);
    const Tensor joined = cat({a, b, a}, 1);
    EXPECT_EQ(joined.shape(), (Shape{2, 6, 3}));
    EXPECT_EQ(joined.dtype(), dtype);
    EXPECT_TRUE(testing::close(joined.narrow(1, 0, 1), a, 0));
    EXPECT_TRUE(testing::close(joined.narrow(1, 1, 4), b, 0));
    EXPECT_TRUE(testing::close(joined.narrow(1, 5, 1), a, 0));
  }
  EXPECT_EQ(cat({Tensor::zeros({2, 3}), Tensor::zeros({2, 1})}, -1).shape(), (Shape{2, 4}));
  const Tensor strided = Tensor::randn({3, 2}, 1).transpose(0, 1);
  EXPECT_TRUE(testing::close(cat({strided.expand({2, 3})}, 0), strided, 0));
}

TEST(Cat, RejectsShapesThatDoNotMatch) {
  EXPECT_THROW(cat({}, 0), Error);
  EXPECT_THROW(cat({Tensor::zeros({2, 3}), Tensor::zeros({2, 4})}, 0), Error);
  EXPECT_THROW(cat({Tensor::zeros({2, 3}), Tensor::zeros({2, 3, 1})}, 0), Error);
  EXPECT_THROW(cat({Tensor::zeros({2, 3})}, 2), Error);
  EXPECT_THROW(cat({Tensor::zeros({2, 3})}, -3), Error);
}

TEST(Mean, DropsItsAxis) {
  const Tensor x = Tensor::from<float>({2, 3}, {1, 2, 3, 5, 7, 9});
  EXPECT_TRUE(testing::close(mean(x, 0), Tensor::from<float>({3}, {3, 4.5, 6}), 0));
  EXPECT_TRUE(testing::close(mean(x, -1), Tensor::from<float>({2}, {2, 7}), 0));
  const Tensor big = Tensor::randn({4, 197, 6}, 1);
  EXPECT_TRUE(testing::close(mean(big, 1), mean(big.to(DType::f64), 1), 197 * std::pow(2, -24)));
  EXPECT_TRUE(testing::close(mean(big.permute({2, 0, 1}), 2), mean(big, 1).transpose(0, 1), 1e-6));
  EXPECT_THROW(mean(x, 2), Error);
  EXPECT_EQ(mean(Tensor::zeros({2, 3, 0}), 1).shape(), (Shape{2, 0}));
}

TEST(Contiguous, CopiesOnlyStridedTensors) {
  const Tensor x = Tensor::randn({3, 4}, 1);
  EXPECT_EQ(contiguous(x).storage(), x.storage());
  const Tensor t = contiguous(x.transpose(0, 1));
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_TRUE(testing::close(t, x.transpose(0, 1), 0));
}

TEST(GatherTokens, TakesTheTokensOfEachSampleInTheirOrder) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i64}) {
    const Tensor x = Tensor::from<int64_t>({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}).to(dtype);
    const Tensor got = gather_tokens(x, {{2, 0, 2, 1}, {1, 1, 0, 2}});
    const std::vector<int64_t> want{4, 5, 0, 1, 4, 5, 2, 3, 8, 9, 8, 9, 6, 7, 10, 11};
    EXPECT_TRUE(testing::close(got, Tensor::from<int64_t>({2, 4, 2}, want), 0));
    EXPECT_EQ(got.dtype(), dtype);
  }
  const Tensor x = Tensor::zeros({2, 3, 2});
  EXPECT_EQ(gather_tokens(x, std::vector<std::vector<int64_t>>(2)).shape(), (Shape{2, 0, 2}));
  EXPECT_THROW(gather_tokens(x, {{0}}), Error) << "one sample's tokens";
  EXPECT_THROW(gather_tokens(x, {{0, 1}, {0}}), Error);
  EXPECT_THROW(gather_tokens(x, {{0}, {3}}), Error);
  EXPECT_THROW(gather_tokens(Tensor::zeros({2, 3}), {{0}, {1}}), Error);
}

// The slow formula, for every axis and layouts that are not contiguous.
TEST(Mean, IsTheSumOverTheAxisDividedByItsLength) {
  const Tensor x = Tensor::randn({3, 4, 5}, 1, DType::f64);
  for (const Tensor& view : {x, x.transpose(0, 2), x.narrow(1, 1, 2), x.select(2, 3).unsqueeze(1)}) {
    for (int axis = 0; axis < 3; ++axis) {
      Tensor want = Tensor::zeros(view.select(axis, 0).shape(), DType::f64);
      for (int64_t i = 0; i < view.size(axis); ++i) want = add(want, view.select(axis, i));
      want = mul(want, Tensor::full({1}, 1.0 / static_cast<double>(view.size(axis)), DType::f64));
      EXPECT_TRUE(testing::close(mean(view, axis), want, 1e-15)) << view.shape() << " " << axis;
      EXPECT_TRUE(testing::close(mean(view, axis - 3), want, 1e-15)) << view.shape() << " " << axis;
    }
  }
}

}  // namespace
}  // namespace vitrail::ops
