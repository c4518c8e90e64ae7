// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/rms_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/golden.h"
#include "vitrail/base/error.h"

namespace vitrail::ops {
namespace {

TEST(RmsNorm, DividesByTheRootMeanSquareOfEachRow) {
  const Tensor x = Tensor::from<float>({2, 2}, {3, 4, 0, -2}), gamma = Tensor::from<float>({2}, {2, 0.5});
  const double first = std::sqrt(12.5 + 0.5), second = std::sqrt(2 + 0.5);
  const Tensor want = Tensor::from<double>({2, 2}, {6 / first, 2 / first, 0, -1 / second});
  EXPECT_TRUE(testing::close(rms_norm(x, gamma, 0.5), want, 1e-6));
  EXPECT_TRUE(testing::close(rms_norm(x.to(DType::f64), gamma.to(DType::f64), 0.5), want, 1e-12));
  EXPECT_EQ(rms_norm(x.to(DType::bf16), {}, 0.5).dtype(), DType::bf16);
  EXPECT_EQ(rms_norm(Tensor::zeros({0, 3}), {}, 1e-5).shape(), (Shape{0, 3}));
}

TEST(RmsNorm, ParametersOfAnotherWidthAreAnError) {
  EXPECT_THROW(rms_norm(Tensor::zeros({2, 3}), Tensor::zeros({2}), 1e-5), Error);
  EXPECT_THROW(rms_norm(Tensor::zeros({}), {}, 1e-5), Error);
}

}  // namespace
}  // namespace vitrail::ops
