// SPDX-License-Identifier: Apache-2.0
// Layer norms against their formula, and their errors.
#include "vitrail/ops/layer_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/inputs.h"
#include "tests/support/golden.h"
#include "vitrail/base/error.h"

namespace vitrail::ops {
namespace {

TEST(LayerNorm, NormalisesRowsThenScalesAndShifts) {
  const Tensor x = draw({2, 3, 5}, 1), gamma = draw({5}, 2), beta = draw({5}, 3);
  const double eps = 0.3;
  for (const bool scaled : {false, true}) {
    for (const bool shifted : {false, true}) {
      const Tensor want = Tensor::empty({2, 3, 5}, DType::f64);
      for (int64_t r = 0; r < 6; ++r) {
        const double* const row = x.data<double>() + r * 5;
        double mean = 0, variance = 0;
        for (int64_t c = 0; c < 5; ++c) mean += row[c] / 5;
        for (int64_t c = 0; c < 5; ++c) variance += (row[c] - mean) * (row[c] - mean) / 5;
        for (int64_t c = 0; c < 5; ++c) {
          const double g = scaled ? gamma.data<double>()[c] : 1, b = shifted ? beta.data<double>()[c] : 0;
          want.data<double>()[r * 5 + c] = (row[c] - mean) / std::sqrt(variance + eps) * g + b;
        }
      }
      const Tensor g = scaled ? gamma : Tensor(), b = shifted ? beta : Tensor();
      EXPECT_TRUE(testing::close(layer_norm(x, g, b, eps), want, 1e-14));
      EXPECT_TRUE(testing::close(layer_norm(x.to(DType::f32), g, b, eps), want, 2e-6));
    }
  }
}

TEST(LayerNorm, SixteenBitAndEmptyInputs) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const Tensor x = Tensor::randn({3, 8}, 1).to(dtype);
    EXPECT_TRUE(testing::close(layer_norm(x, {}, {}, 1e-6), layer_norm(x.to(DType::f32), {}, {}, 1e-6).to(dtype), 0));
  }
  EXPECT_EQ(layer_norm(Tensor::zeros({0, 8}), {}, {}, 1e-6).shape(), (Shape{0, 8}));
  EXPECT_EQ(layer_norm(Tensor::zeros({3, 0}), {}, {}, 1e-6).shape(), (Shape{3, 0}));
  EXPECT_THROW(layer_norm(Tensor::zeros({3, 8}), Tensor::zeros({7}), {}, 1e-6), Error);
  EXPECT_THROW(layer_norm(Tensor::zeros({3, 8}), {}, Tensor::zeros({9}), 1e-6), Error);
  EXPECT_THROW(layer_norm(Tensor::zeros({}), {}, {}, 1e-6), Error);
  EXPECT_THROW(layer_norm(Tensor::zeros({3, 8}), {}, Tensor::zeros({1, 8}), 1e-6), Error);
  EXPECT_THROW(layer_norm(Tensor::zeros({3, 8}, DType::i32), {}, {}, 1e-6), Error);
}

}  // namespace
}  // namespace vitrail::ops
