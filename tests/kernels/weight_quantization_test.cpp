// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/weight_quantization_internal.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "tests/kernels/kernel_testing.h"
#include "vitrail/kernels/gemm/scalar_gemm_internal.h"

namespace vitrail::kernels {
namespace {

using testing::random_floats;

TEST(WeightQuantization, ValuesAreTheSameOnEveryInstructionSetAndWithinTheSaturationLimit) {
  for (const int64_t in : {1, 2, 3, 8, 17, 64, 301}) {
    const std::vector<float> row = random_floats(in, 7 + static_cast<int>(in));
    std::vector<int8_t> want(static_cast<size_t>(in)), got(want);
    const float scale = scalar::quantize_weight_row(row.data(), in, want.data());
    testing::for_each_isa([&](Isa) {
      EXPECT_EQ(quantize_weight_row(row.data(), in, got.data()), scale);
      EXPECT_EQ(got, want);
    });
    for (int64_t i = 0; i < in; ++i) {
      EXPECT_NEAR(scale * static_cast<float>(want[i]), row[i], scale * 0.5001f);
      EXPECT_LE(std::abs(want[i]), kMaxInt8);
      if (i % 2 == 1) {
        EXPECT_LE(std::abs(want[i] + want[i - 1]), kSaturationLimit);
      }
    }
  }
}

// Whatever the scale and the largest value or pair are.
TEST(WeightQuantization, RecoversTheIntegersOfADequantizedRow) {
  for (const int largest_pair : {70, 100, 127, 128}) {
    std::vector<int8_t> values(50), got(50);
    for (int i = 0; i < 50; ++i) values[i] = static_cast<int8_t>(i * 29 % 63 - 31);
    values[20] = static_cast<int8_t>(-(largest_pair - 5));
    values[21] = -5;
    std::vector<float> row;
    for (const int8_t value : values) row.push_back(0.0123f * static_cast<float>(value));
    testing::for_each_isa([&](Isa) {
      EXPECT_NEAR(quantize_weight_row(row.data(), 50, got.data()), 0.0123f, 1e-7f);
      EXPECT_EQ(got, values) << largest_pair;
    });
  }
}

TEST(WeightQuantization, ScaleIsZeroForARowOfZerosAndNaNForARowThatIsNotFinite) {
  std::vector<float> row(20);
  std::vector<int8_t> values(20, 1);
  testing::for_each_isa([&](Isa) {
    row[13] = 0;
    EXPECT_EQ(quantize_weight_row(row.data(), 20, values.data()), 0);
    EXPECT_EQ(values, std::vector<int8_t>(20));
    row[13] = std::numeric_limits<float>::infinity();
    EXPECT_TRUE(std::isnan(quantize_weight_row(row.data(), 20, values.data())));
  });
}

}  // namespace
}  // namespace vitrail::kernels
