// SPDX-License-Identifier: Apache-2.0
// Residual sums against their formula, and their errors.
#include "vitrail/ops/residual_add.h"

#include <gtest/gtest.h>

#include "tests/ops/inputs.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/ops/elementwise.h"

namespace vitrail::ops {
namespace {

using testing::error_of;

TEST(ResidualAdd, InDoubleIsTheFormulaForEachSample) {
  const Tensor x = draw({3, 2, 4}, 1), y = draw({3, 2, 4}, 2), scale = draw({4}, 3);
  const Tensor keep = Tensor::from<double>({3}, {0, 1.25, 2});
  for (const bool scaled : {false, true}) {
    for (const bool kept : {false, true}) {
      const Tensor want = Tensor::empty({3, 2, 4}, DType::f64);
      for (int64_t i = 0; i < 24; ++i) {
        const double s = scaled ? scale.data<double>()[i % 4] : 1, k = kept ? keep.data<double>()[i / 8] : 1;
        want.data<double>()[i] = x.data<double>()[i] + k * s * y.data<double>()[i];
      }
      const Tensor s = scaled ? scale : Tensor(), k = kept ? keep : Tensor();
      EXPECT_TRUE(testing::close(residual_add(x, y, s, k), want, 1e-15));
      EXPECT_TRUE(testing::close(residual_add(x.to(DType::f32), y, s, k), want, 1e-6));
    }
  }
  EXPECT_EQ(residual_add(x.to(DType::f16), y).dtype(), DType::f16);
}

TEST(ResidualAdd, AddsTheScaledBranch) {
  const Tensor x = Tensor::randn({3, 2, 5}, 1), y = Tensor::randn({3, 2, 5}, 2), scale = Tensor::randn({5}, 3);
  EXPECT_TRUE(testing::close(residual_add(x, y), add(x, y), 0));
  EXPECT_TRUE(testing::close(residual_add(x, y, scale), add(x, mul(y, scale)), 1e-6));
  const Tensor keep = Tensor::from<double>({3}, {0, 1, 2});
  const Tensor factor = keep.view({3, 1, 1}).to(DType::f32);
  EXPECT_TRUE(testing::close(residual_add(x, y, scale, keep), add(x, mul(mul(y, scale), factor)), 1e-6));
  const Tensor strided = Tensor::from<double>({6}, {0, 9, 1, 9, 2, 9}).view({3, 2}).select(1, 0);
  EXPECT_TRUE(testing::close(residual_add(x, y, {}, strided), residual_add(x, y, {}, keep), 0));
  EXPECT_TRUE(
      testing::close(residual_add(x.to(DType::bf16), y.to(DType::bf16)), add(x.to(DType::bf16), y.to(DType::bf16)), 0));
  EXPECT_EQ(residual_add(Tensor::zeros({0, 5}), Tensor::zeros({0, 5})).shape(), (Shape{0, 5}));
}

TEST(ResidualAdd, RejectsShapesThatDoNotMatch) {
  const Tensor x = Tensor::zeros({3, 5});
  EXPECT_THROW(residual_add(x, Tensor::zeros({3, 4})), Error);
  EXPECT_THROW(residual_add(x, x, Tensor::zeros({3})), Error);
  EXPECT_THROW(residual_add(x, x, {}, Tensor::zeros({5}, DType::f64)), Error);
  EXPECT_THROW(residual_add(x, x, {}, Tensor::zeros({3})), Error);  // f32
}

TEST(ResidualAdd, ErrorsNameTheWrongPart) {
  const Tensor x = Tensor::zeros({3, 5});
  EXPECT_ERROR(error_of([&] { residual_add(x, Tensor::zeros({3, 4})); }), "residual_add", "[3, 5] and [3, 4]");
  EXPECT_ERROR(error_of([&] { residual_add(x, x, Tensor::zeros({3})); }), "residual_add", "[3]");
  EXPECT_ERROR(error_of([&] { residual_add(x, x, {}, Tensor::zeros({5}, DType::f64)); }), "residual_add", "f64 [5]");
  EXPECT_ERROR(error_of([&] { residual_add(x, x, {}, Tensor::zeros({3})); }), "residual_add", "f32 [3]");
}

}  // namespace
}  // namespace vitrail::ops
