// SPDX-License-Identifier: Apache-2.0
// Every number of both formats, by their definition: sign · 2^(exponent − bias) · 1.mantissa.
#include "vitrail/weights/float8_internal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace vitrail::weights {
namespace {

double by_definition(int bits, int mantissa_bits, int bias) {
  const int exponent = (bits & 0x7f) >> mantissa_bits, mantissa = bits % (1 << mantissa_bits);
  const double fraction = static_cast<double>(mantissa) / (1 << mantissa_bits);
  const double magnitude =
      exponent == 0 ? fraction * std::pow(2.0, 1 - bias) : (1 + fraction) * std::pow(2.0, exponent - bias);
  return bits >= 128 ? -magnitude : magnitude;
}

TEST(Float8, EveryNumberIsThatOfItsDefinition) {
  for (int bits = 0; bits < 256; ++bits) {
    const float e4m3 = widen(static_cast<uint8_t>(bits), Float8::e4m3fn),
                e5m2 = widen(static_cast<uint8_t>(bits), Float8::e5m2);
    if (bits % 128 == 127) {  // the only NaN; there is no infinity
      EXPECT_TRUE(std::isnan(e4m3)) << bits;
    } else {
      EXPECT_EQ(e4m3, by_definition(bits, 3, 7)) << bits;
      EXPECT_EQ(std::signbit(e4m3), bits >= 128) << bits;
    }
    if (bits % 128 > 124) {
      EXPECT_TRUE(std::isnan(e5m2)) << bits;
    } else if (bits % 128 == 124) {
      EXPECT_EQ(e5m2, bits >= 128 ? -INFINITY : INFINITY);
    } else {
      EXPECT_EQ(e5m2, by_definition(bits, 2, 15)) << bits;
      EXPECT_EQ(std::signbit(e5m2), bits >= 128) << bits;
    }
  }
}

TEST(Float8, ATensorIsWidenedElementByElement) {
  const Tensor bytes = Tensor::from<uint8_t>({2, 3}, {0x38, 0x40, 0xb8, 0x01, 0x80, 0x7e});
  const Tensor e4m3 = widen(bytes, Float8::e4m3fn), e5m2 = widen(bytes, Float8::e5m2);
  EXPECT_EQ(e4m3.dtype(), DType::f32);
  EXPECT_EQ(e4m3.shape(), (Shape{2, 3}));
  const std::vector<float> want_e4m3{1, 2, -1, 0x1p-9F, 0, 448}, want_e5m2{0.5F, 2, -0.5F, 0x1p-16F, 0, 0};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(e4m3.data<float>()[i], want_e4m3[i]) << i;
    if (i < 5) {
      EXPECT_EQ(e5m2.data<float>()[i], want_e5m2[i]) << i;
    }
  }
  EXPECT_TRUE(std::isnan(e5m2.data<float>()[5]));
}

}  // namespace
}  // namespace vitrail::weights
