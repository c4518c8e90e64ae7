// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/int8_tensors.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace vitrail::weights {
namespace {

// fp16 has ten bits behind the first one, bf16 seven.
TEST(In16Bits, AreFp16WhereThatIsNearer) {
  const Tensor weight = Tensor::randn({4, 8}, 1);
  const Tensor kept = to_16_bits(weight);
  EXPECT_EQ(kept.dtype(), DType::f16);
  EXPECT_TRUE(testing::close(kept.to(DType::f32), weight, 0, 1.0 / 2048));
}

TEST(In16Bits, AreBf16WhereFp16HasNoSuchNumbers) {
  for (const float factor : {1e5F, 1e-8F}) {
    const Tensor weight = Tensor::randn({4, 8}, 1);
    for (int64_t i = 0; i < weight.numel(); ++i) weight.data<float>()[i] *= factor;
    const Tensor kept = to_16_bits(weight);
    EXPECT_EQ(kept.dtype(), DType::bf16) << factor;
    EXPECT_TRUE(testing::close(kept.to(DType::f32), weight, 0, 1.0 / 256)) << factor;
  }
}

}  // namespace
}  // namespace vitrail::weights
