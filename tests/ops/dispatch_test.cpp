// SPDX-License-Identifier: Apache-2.0
// Conversion to another dtype.
#include "vitrail/ops/dispatch.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace vitrail::ops {
namespace {

TEST(Converted, IsTheConversionOfAnyLayout) {
  const Tensor x = Tensor::randn({5, 7}, 1);
  for (const DType from : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    for (const DType to : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      const Tensor dense = x.to(from), strided = dense.transpose(0, 1);
      EXPECT_EQ(converted(dense, to).dtype(), to);
      EXPECT_TRUE(testing::close(converted(dense, to), dense.to(to), 0));
      EXPECT_TRUE(testing::close(converted(strided, to), strided.to(to), 0));
    }
  }
  const Tensor none = converted(Tensor::empty({2}, DType::f32, Device::meta), DType::bf16);
  EXPECT_TRUE(none.is_meta());
  EXPECT_EQ(none.dtype(), DType::bf16);
}

}  // namespace
}  // namespace vitrail::ops
