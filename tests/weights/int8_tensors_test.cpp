// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/int8_tensors.h"

#include <gtest/gtest.h>

#include <limits>
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

TEST(In16Bits, OfEqualErrorsFp16IsTaken) {
  for (const float value : {0.F, 1.F, -0.5F, 96.F}) {
    const Tensor kept = to_16_bits(Tensor::full({2, 3}, value));
    EXPECT_EQ(kept.dtype(), DType::f16) << value;
    EXPECT_EQ(kept.shape(), (Shape{2, 3}));
    EXPECT_EQ(static_cast<float>(kept.data<Float16>()[5]), value);
  }
}

// One value decides: 1e6 is infinite in fp16.
TEST(In16Bits, TheErrorIsThatOfAllElements) {
  Tensor weight = Tensor::full({3, 2}, 1.001);
  EXPECT_EQ(to_16_bits(weight).dtype(), DType::f16);
  weight.data<float>()[5] = 1e6F;
  EXPECT_EQ(to_16_bits(weight).dtype(), DType::bf16);
  EXPECT_EQ(to_16_bits(Tensor::full({4}, 65504)).dtype(), DType::f16);
  EXPECT_EQ(to_16_bits(Tensor::full({2, 2}, 1 + 0x1p-10, DType::f64).transpose(0, 1)).dtype(), DType::f16);
}

TEST(Int8Names, AreThoseOfTheWeightWithAnEnding) {
  EXPECT_EQ(int8_scale_name("blocks.0.w"), "blocks.0.w_scale");
  EXPECT_EQ(int8_correction_name("blocks.0.w"), "blocks.0.w_correction");
  EXPECT_EQ(old_int8_correction_name("blocks.0.w"), "blocks.0.w_rest");
}

}  // namespace
}  // namespace vitrail::weights
