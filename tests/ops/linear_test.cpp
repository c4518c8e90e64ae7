// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/linear.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/golden.h"
#include "vitrail/base/error.h"
#include "vitrail/ops/elementwise.h"

namespace vitrail::ops {
namespace {

TEST(Linear, IsXTimesWTransposedPlusB) {
  const Tensor x = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6}),
               w = Tensor::from<float>({2, 3}, {1, 0, -1, 2, 1, 0});
  const Tensor b = Tensor::from<float>({2}, {10, 20});
  EXPECT_TRUE(testing::close(linear(x, w, b), Tensor::from<float>({2, 2}, {8, 24, 8, 33}), 0));
  EXPECT_TRUE(testing::close(linear(x, w, {}), Tensor::from<float>({2, 2}, {-2, 4, -2, 13}), 0));
}

// A dot product of K terms of order 1 in f32 has an error of at most K · 2^-24; 300 · 6e-8 = 2e-5.
TEST(Linear, InFloatEqualsDoubleOnAwkwardSizes) {
  using kernels::Activation;
  for (const int64_t rows : {0, 1, 3, 17, 65}) {
    for (const auto& [in, out] : {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {16, 16}, {31, 33}, {300, 7}}) {
      const Tensor x = Tensor::randn({rows, in}, 1), w = Tensor::randn({out, in}, 2), b = Tensor::randn({out}, 3);
      for (const Activation act : {Activation::none, Activation::gelu, Activation::relu}) {
        const Tensor expected = linear(x.to(DType::f64), w.to(DType::f64), b.to(DType::f64), act);
        ASSERT_TRUE(testing::close(linear(x, w, b, act), expected, 1e-5 + static_cast<double>(in) * 6e-8, 1e-6))
            << rows << " " << in << " " << out << " " << name_of(act);
      }
    }
  }
}

TEST(Linear, AcceptsAnyRankAndLayout) {
  const Tensor x = Tensor::randn({2, 5, 3}, 1), w = Tensor::randn({4, 3}, 2);
  const Tensor flat = linear(x.view({10, 3}), w, {});
  EXPECT_TRUE(testing::close(linear(x, w, {}), flat.view({2, 5, 4}), 0));
  EXPECT_TRUE(testing::close(linear(x.transpose(0, 1), w, {}), flat.view({2, 5, 4}).transpose(0, 1), 1e-6));
  EXPECT_EQ(linear(x.select(0, 0).select(0, 0), w, {}).shape(), (Shape{4}));
  EXPECT_TRUE(testing::close(linear(x, Tensor::randn({3, 4}, 2).transpose(0, 1), {}),
                             linear(x, Tensor::randn({3, 4}, 2).transpose(0, 1).contiguous(), {}), 0));
}

TEST(Linear, EmptyExtents) {
  EXPECT_EQ(linear(Tensor::zeros({0, 3}), Tensor::zeros({4, 3}), {}).shape(), (Shape{0, 4}));
  EXPECT_EQ(linear(Tensor::zeros({2, 3}), Tensor::zeros({0, 3}), {}).shape(), (Shape{2, 0}));
  const Tensor nothing_in = linear(Tensor::zeros({2, 0}), Tensor::zeros({4, 0}), Tensor::full({4}, 5));
  EXPECT_TRUE(testing::close(nothing_in, Tensor::full({2, 4}, 5), 0));
}

TEST(Linear, SixteenBitInputsAreComputedInFloatAndRoundedOnce) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const Tensor x = Tensor::randn({3, 8}, 1).to(dtype), w = Tensor::randn({5, 8}, 2).to(dtype);
    const Tensor expected = linear(x.to(DType::f32), w.to(DType::f32), {}, kernels::Activation::gelu);
    const Tensor got = linear(x, w, {}, kernels::Activation::gelu);
    EXPECT_EQ(got.dtype(), dtype);
    EXPECT_TRUE(testing::close(got, expected.to(dtype), 0));
  }
}

TEST(Linear, ThrowsAnErrorThatNamesShapesThatDoNotMatch) {
  EXPECT_THROW(linear(Tensor::zeros({2, 3}), Tensor::zeros({4, 5}), {}), Error);
  EXPECT_THROW(linear(Tensor::zeros({2, 3}), Tensor::zeros({3}), {}), Error);
  EXPECT_THROW(linear(Tensor::zeros({2, 3}), Tensor::zeros({4, 3}), Tensor::zeros({3})), Error);
  EXPECT_THROW(linear(Tensor::zeros({2, 3}, DType::i64), Tensor::zeros({4, 3}), {}), Error);
  try {
    linear(Tensor::zeros({2, 3}), Tensor::zeros({4, 5}), {});
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "linear: expected x [..., 5] for a weight of shape [4, 5], got shape [2, 3]");
  }
}

TEST(Matmul, MultipliesTheMatricesOfABatch) {
  const Tensor a = Tensor::randn({2, 3, 4, 5}, 1), b = Tensor::randn({2, 3, 5, 6}, 2);
  const Tensor c = matmul(a, b);
  EXPECT_EQ(c.shape(), (Shape{2, 3, 4, 6}));
  for (int64_t i = 0; i < 6; ++i) {
    const Tensor ai = a.view({6, 4, 5}).select(0, i), bi = b.view({6, 5, 6}).select(0, i);
    EXPECT_TRUE(testing::close(c.view({6, 4, 6}).select(0, i), linear(ai, bi.transpose(0, 1), {}), 1e-6));
  }
  EXPECT_TRUE(testing::close(matmul(a.to(DType::f64), b), c, 1e-5));
  EXPECT_EQ(matmul(Tensor::zeros({2, 0, 3}), Tensor::zeros({2, 3, 4})).shape(), (Shape{2, 0, 4}));
  EXPECT_TRUE(testing::close(matmul(Tensor::zeros({2, 0}), Tensor::zeros({0, 3})), Tensor::zeros({2, 3}), 0));
  EXPECT_THROW(matmul(a, a), Error);
  EXPECT_THROW(matmul(a, Tensor::zeros({2, 2, 5, 6})), Error);
  EXPECT_THROW(matmul(a, Tensor::zeros({5, 6})), Error);
}

TEST(Matmul, OfMatricesWithoutColumnsIsEmpty) {
  EXPECT_EQ(matmul(Tensor::zeros({2, 3, 4}), Tensor::zeros({2, 4, 0})).shape(), (Shape{2, 3, 0}));
  const Tensor a = Tensor::from<double>({2, 3}, {1, 2, 3, 4, 5, 6}), b = Tensor::from<double>({3, 1}, {1, 10, 100});
  EXPECT_TRUE(testing::close(matmul(a, b), Tensor::from<double>({2, 1}, {321, 654}), 0));
  EXPECT_EQ(matmul(a.to(DType::bf16), b).dtype(), DType::bf16);
}

}  // namespace
}  // namespace vitrail::ops
