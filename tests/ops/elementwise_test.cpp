// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/inputs.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::ops {
namespace {

using testing::error_of;

constexpr DType kFloating[] = {DType::f64, DType::f32, DType::bf16, DType::f16};

TEST(Add, BroadcastsAsNumPy) {
  const Tensor column = Tensor::from<float>({2, 1}, {10, 20}), row = Tensor::from<float>({3}, {1, 2, 3});
  EXPECT_TRUE(testing::close(add(column, row), Tensor::from<float>({2, 3}, {11, 12, 13, 21, 22, 23}), 0));
  EXPECT_TRUE(testing::close(mul(row, column), Tensor::from<float>({2, 3}, {10, 20, 30, 20, 40, 60}), 0));
  EXPECT_EQ(add(Tensor::zeros({2, 1, 4}), Tensor::zeros({3, 1})).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(add(Tensor::zeros({2, 0}), Tensor::zeros({1})).shape(), (Shape{2, 0}));
  EXPECT_THROW(add(Tensor::zeros({2, 3}), Tensor::zeros({2})), Error);
  EXPECT_THROW(add(Tensor::zeros({2}, DType::i64), Tensor::zeros({2}, DType::i64)), Error);
}

TEST(Add, AcceptsAnyLayoutAndKeepsTheFirstDtype) {
  const Tensor x = Tensor::randn({4, 3}, 1), y = Tensor::randn({3, 4}, 2);
  EXPECT_TRUE(testing::close(add(x.transpose(0, 1), y), add(x.transpose(0, 1).contiguous(), y), 0));
  for (const DType dtype : kFloating) EXPECT_EQ(add(x.to(dtype), x).dtype(), dtype);
  EXPECT_TRUE(testing::close(mul(Tensor::full({1}, 1 + 1e-12, DType::f64), Tensor::full({1}, 1, DType::f64)),
                             Tensor::full({1}, 1 + 1e-12, DType::f64), 0))
      << "f64 is computed in double";
}

TEST(Elementwise, SixteenBitInputsAreComputedInFloatAndRoundedOnce) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const Tensor a = Tensor::randn({5, 8}, 1).to(dtype), b = Tensor::randn({5, 8}, 2).to(dtype);
    const Tensor af = a.to(DType::f32), bf = b.to(DType::f32);
    EXPECT_TRUE(testing::close(add(a, b), add(af, bf).to(dtype), 0));
    EXPECT_TRUE(testing::close(mul(a, b), mul(af, bf).to(dtype), 0));
    EXPECT_TRUE(testing::close(silu_gate(a), silu_gate(af).to(dtype), 0));
    EXPECT_TRUE(testing::close(mean(a, 0), mean(af, 0).to(dtype), 0));
    EXPECT_TRUE(testing::close(activation(a, kernels::Activation::gelu),
                               activation(af, kernels::Activation::gelu).to(dtype), 0));
    EXPECT_TRUE(testing::close(cat({a, b}, 1), cat({af, bf}, 1), 0));
  }
}

TEST(DropoutMask, ASampleHasTheSameDrawsInEveryBatch) {
  const Tensor whole = dropout_mask({4, 50}, 0.5, 5, {}, DType::f32);
  const Tensor part = dropout_mask({2, 50}, 0.5, 5, {3, 1}, DType::f32);
  EXPECT_TRUE(testing::close(part.narrow(0, 0, 1), whole.narrow(0, 3, 1), 0));
  EXPECT_TRUE(testing::close(part.narrow(0, 1, 1), whole.narrow(0, 1, 1), 0));
  EXPECT_THROW(dropout_mask({3, 50}, 0.5, 5, {3, 1}, DType::f32), Error);
}

TEST(DropoutMask, ContainsZerosAndTheScale) {
  const Tensor mask = dropout_mask({10000}, 0.2, 5, {}, DType::f64);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double m = mask.data<double>()[i];
    ASSERT_TRUE(m == 0 || m == 1 / 0.8) << m;
    sum += m;
  }
  EXPECT_NEAR(sum / 10000, 1, 6 * std::sqrt(0.25 / 10000));  // variance p / (1 − p), six deviations
  EXPECT_TRUE(testing::close(dropout_mask({10000}, 0.2, 5, {}, DType::f32), mask, 0));
}

// Element i of sample b is dropped if the i-th draw of the stream (key, position of b) is below p · 2^32.
TEST(DropoutMask, FollowsTheDrawsOfItsKeyAndPosition) {
  const double p = 0.3;
  const auto threshold = static_cast<uint32_t>(p * 4294967296.0);
  for (const std::vector<int64_t>& positions : {std::vector<int64_t>{}, {7, 2, 5}}) {
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
      const Tensor mask = dropout_mask({3, 2, 20}, p, 11, positions, dtype);
      ASSERT_EQ(mask.dtype(), dtype);
      ASSERT_EQ(mask.shape(), (Shape{3, 2, 20}));
      const Tensor values = mask.to(DType::f64).contiguous();
      const double kept = Tensor::full({}, 1 / (1 - p), dtype).to(DType::f64).item<double>();
      for (int64_t b = 0; b < 3; ++b) {
        RandomStream random(11, static_cast<uint64_t>(positions.empty() ? b : positions[static_cast<size_t>(b)]));
        for (int64_t i = 0; i < 40; ++i) {
          ASSERT_NEAR(values.data<double>()[b * 40 + i], random.bits() < threshold ? 0 : kept, 1e-7) << b << " " << i;
        }
      }
    }
  }
  EXPECT_EQ(dropout_mask({}, 0.5, 1, {}, DType::f32).numel(), 1);
  EXPECT_EQ(dropout_mask({0, 4}, 0.5, 1, {}, DType::f32).shape(), (Shape{0, 4}));
  EXPECT_ERROR(error_of([] { dropout_mask({3, 4}, 0.5, 1, {0, 1}, DType::f32); }), "dropout", "2");
}

TEST(ReducedTo, SumsWhatBroadcastingRepeats) {
  const Tensor grad = draw({2, 3, 4}, 1);
  for (const Shape& shape : {Shape{2, 3, 4}, Shape{3, 4}, Shape{4}, Shape{1, 3, 4}, Shape{2, 1, 4}, Shape{2, 3, 1},
                             Shape{1, 4}, Shape{3, 1}, Shape{1}, Shape{1, 1, 1}}) {
    const Tensor want = Tensor::zeros(shape, DType::f64);
    const Tensor spread = want.expand({2, 3, 4});
    for (int64_t i = 0; i < 24; ++i) {
      const int64_t at = i / 12 * spread.strides()[0] + i / 4 % 3 * spread.strides()[1] + i % 4 * spread.strides()[2];
      want.data<double>()[at] += grad.data<double>()[i];
    }
    EXPECT_TRUE(testing::close(reduced_to(grad, shape), want, 1e-14)) << shape;
    const Tensor single = reduced_to(grad.to(DType::f32), shape);
    EXPECT_EQ(single.dtype(), DType::f32);
    EXPECT_TRUE(testing::close(single, want, 1e-5)) << shape;
    EXPECT_EQ(reduced_to(grad.to(DType::bf16), shape).dtype(), DType::bf16);
  }
  EXPECT_EQ(reduced_to(grad, {2, 3, 4}).storage(), grad.storage());
  EXPECT_TRUE(testing::close(reduced_to(Tensor::zeros({0, 3}), {3}), Tensor::zeros({3}), 0));
}

}  // namespace
}  // namespace vitrail::ops
