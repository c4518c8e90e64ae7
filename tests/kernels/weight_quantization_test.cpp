// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/weight_quantization_internal.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

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

// 127 / max is not finite.
TEST(WeightQuantization, ARowOfDenormalNumbersCountsAsZeros) {
  const std::vector<float> row{1e-38F, -1e-45F, -2e-38F, 0, 3e-37F, 1e-37F, 0, 0, 1e-38F, 0};
  std::vector<int8_t> values(row.size(), 1);
  testing::for_each_isa([&](Isa) {
    EXPECT_EQ(quantize_weight_row(row.data(), static_cast<int64_t>(row.size()), values.data()), 0);
    EXPECT_EQ(values, std::vector<int8_t>(row.size()));
  });
}

// Rounded to nearest with ties to even; the largest value, or sum of a pair, becomes 127.
TEST(WeightQuantization, RoundsToTheScaleOfTheLargestValueOrPair) {
  struct Case {
    std::vector<float> row;
    float scale;
    std::vector<int8_t> values;
  };
  for (const auto& [row, scale, values] :
       {Case{{0.3F, -1.27F, 0.0071F}, 0.01F, {30, -127, 1}},                   // 127 / 1.27
        Case{{1.27F, 1.2F, 0.013F, -0.5077F}, 2.47F / 127, {65, 62, 1, -26}},  // 127 / (1.27 + 1.2)
        Case{{1, -1.27F, 0.0149F}, 0.01F, {100, -127, 1}},                     // signs differ: no larger pair
        Case{{0.7077F, 0.0123F, 1.27F}, 0.01F, {71, 1, 127}}}) {               // the last value has no partner
    testing::for_each_isa([&, &row = row, &values = values, scale = scale](Isa) {
      std::vector<int8_t> got(row.size());
      EXPECT_FLOAT_EQ(quantize_weight_row(row.data(), static_cast<int64_t>(row.size()), got.data()), scale);
      EXPECT_EQ(got, values);
    });
  }
}

// Integers are recovered up to the largest value of 127 and the largest pair of 254.  Smaller ones are multiplied by
// what the range of the values allows.
TEST(WeightQuantization, KeepsIntegersOfAnySize) {
  struct Case {
    int first, second, multiple;
  };
  for (const auto& [first, second, multiple] :
       {Case{127, 127, 1}, Case{127, 126, 1}, Case{-127, -127, 1}, Case{-127, 3, 1}, Case{64, 0, 1}, Case{63, 0, 2},
        Case{43, -1, 2}, Case{42, 7, 3}, Case{33, 0, 3}, Case{16, 0, 7}}) {
    std::vector<int8_t> want(20), got(20);
    std::vector<float> row;
    for (int i = 0; i < 20; ++i) {
      const int value = i == 6 ? first : i == 7 ? second : i % 7 - 3;
      row.push_back(0.02F * static_cast<float>(value));
      want[i] = static_cast<int8_t>(multiple * value);
    }
    testing::for_each_isa([&, multiple = multiple](Isa) {
      EXPECT_NEAR(quantize_weight_row(row.data(), 20, got.data()), 0.02 / multiple, 1e-8);
      EXPECT_EQ(got, want) << want[6] << " " << want[7];
    });
  }
}

TEST(WeightQuantization, PairsAreLimitedWhereSumsOf16BitsSaturate) {
  EXPECT_EQ(kMaxInt8, 127);
  EXPECT_EQ(kSaturationLimit, 128);
  testing::for_each_isa([](Isa isa) {
    const FeatureSet features = features_of(isa);
    const bool exact = features.has(Feature::avx512_vnni) || features.has(Feature::neon);
    EXPECT_EQ(max_int8_pair(), exact ? 254 : 128);
  });
}

}  // namespace
}  // namespace vitrail::kernels
