// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/activation_scales.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "vitrail/base/random.h"
#include "vitrail/quantize/activation_histogram_internal.h"

namespace vitrail::quantize {
namespace {

using testing::input_of;
using testing::model_of;

float dequantized(float x, const AffineQuantization& to) {
  const float lowest = to.dtype == DType::i8 ? -128 : 0, highest = to.dtype == DType::i8 ? 127 : 255;
  const float q = std::nearbyint(x / to.scale) + static_cast<float>(to.zero_point);
  return to.scale * (std::clamp(q, lowest, highest) - static_cast<float>(to.zero_point));
}

double squared_error(const std::vector<float>& values, const AffineQuantization& to) {
  double sum = 0;
  for (const float x : values) sum += std::pow(dequantized(x, to) - x, 2);
  return sum;
}

AffineQuantization chosen(const std::vector<float>& values, DType dtype) {
  ActivationHistogram histogram({1});
  histogram.add(values.data(), static_cast<int64_t>(values.size()), 1);
  return histogram.quantization(dtype);
}

// GELU of normal values, with rare outliers.
std::vector<float> skewed_values(int outliers) {
  RandomStream random(random_key("skewed_values"));
  std::vector<float> values;
  for (int i = 0; i < 20000; ++i) {
    const double x = 2 * random.normal();
    values.push_back(static_cast<float>(x / 2 * std::erfc(-x * std::numbers::sqrt2 / 2)));
  }
  for (int i = 0; i < outliers; ++i) values.push_back(40);
  return values;
}

// The exact error at each range of a grid: the smallest is at most 10 % below that of the choice, which takes rounding
// errors as uniform.
TEST(ActivationHistogram, RangeMinimizesTheSquaredError) {
  for (const int outliers : {0, 1, 20, 400}) {
    const std::vector<float> values = skewed_values(outliers);
    double min_symmetric = std::numeric_limits<double>::infinity(), min = min_symmetric;
    for (float hi = 40; hi > 0.5f; hi *= 0.96f) {
      min_symmetric = std::min(min_symmetric, squared_error(values, {DType::i8, hi / 127, 0}));
      for (const float lo : {-0.17f, -0.14f, -0.1f}) {
        const float scale = (hi - lo) / 255;
        const auto zero = static_cast<int32_t>(std::lround(-lo / scale));
        min = std::min(min, squared_error(values, {DType::u8, scale, zero}));
      }
    }
    const AffineQuantization symmetric = chosen(values, DType::i8), affine = chosen(values, DType::u8);
    EXPECT_EQ(symmetric.zero_point, 0);
    EXPECT_LT(squared_error(values, symmetric), 1.1 * min_symmetric) << outliers << " outliers";
    EXPECT_LT(squared_error(values, affine), 1.1 * min) << outliers << " outliers";
  }
}

TEST(ActivationHistogram, ValuesThatFillTheirRangeKeepIt) {
  std::vector<float> pixels;
  for (int i = 0; i < 256; ++i) pixels.push_back(static_cast<float>(i) / 255 * 2 - 1);
  const AffineQuantization symmetric = chosen(pixels, DType::i8), affine = chosen(pixels, DType::u8);
  EXPECT_NEAR(symmetric.scale, 1.0 / 127, 1e-6);
  EXPECT_NEAR(affine.scale, 2.0 / 255, 1e-6);
  EXPECT_NEAR(affine.zero_point, 127.5, 0.5);
}

// The second channel does not reach the output.
TEST(ActivationHistogram, ChannelsCountByTheirImportance) {
  ActivationHistogram histogram({1, 0});
  std::vector<float> rows;
  for (int i = 0; i < 1000; ++i) rows.insert(rows.end(), {static_cast<float>(i % 11) - 5, 50});
  histogram.add(rows.data(), 1000, 1);
  EXPECT_NEAR(histogram.quantization(DType::i8).scale, 5.0 / 127, 0.05 * 5 / 127);
}

TEST(ActivationHistogram, LaterValuesWidenTheRange) {
  const std::vector<float> values = skewed_values(400);
  ActivationHistogram histogram({1});
  for (const float value : values) histogram.add(&value, 1, 1);
  const AffineQuantization together = chosen(values, DType::u8), apart = histogram.quantization(DType::u8);
  EXPECT_NEAR(apart.scale, together.scale, 0.1 * together.scale);
}

TEST(ActivationHistogram, ZerosHaveTheScaleOne) {
  for (const DType dtype : {DType::i8, DType::u8}) {
    const AffineQuantization of_zeros = chosen({0, 0}, dtype);
    EXPECT_EQ(of_zeros.scale, 1);
    EXPECT_EQ(of_zeros.zero_point, 0);
  }
}

TEST(ActivationScales, AreThoseOfTheLinearLayers) {
  for (const std::string fixture : {"timm_token", "timm_swiglu", "torch_encoder_post_norm", "timm_eva02_clip_base"}) {
    const models::VisionTransformer model = model_of(fixture);
    const auto scales = activation_scales(model, {input_of(fixture)}, DType::u8);
    EXPECT_EQ(scales.size(), static_cast<size_t>(4 * model.config().depth + 1)) << fixture;
    EXPECT_EQ(scales.count("patch_embed.proj"), 1u) << fixture;
    for (const auto& [layer, scale] : scales) EXPECT_GT(scale.scale, 0) << layer;
  }
}

TEST(ActivationScales, LeaveOutExcludedLayers) {
  const models::VisionTransformer model = model_of("timm_token");
  const auto scales =
      activation_scales(model, {input_of("timm_token")}, DType::i8, {"blocks.1.mlp.fc2", "patch_embed.proj"});
  EXPECT_EQ(scales.size(), static_cast<size_t>(4 * model.config().depth - 1));
  EXPECT_EQ(scales.count("blocks.1.mlp.fc2"), 0u);
}

TEST(ActivationScales, RefuseInputsThatAreNotFinite) {
  const models::VisionTransformer model = model_of("timm_token");
  const Tensor image = input_of("timm_token").clone();
  image.data<float>()[0] = std::numeric_limits<float>::infinity();
  const std::string error = testing::error_of([&] { activation_scales(model, {image}, DType::i8); });
  EXPECT_TRUE(testing::contains(error, "patch_embed.proj: expected finite inputs")) << error;
}

}  // namespace
}  // namespace vitrail::quantize
