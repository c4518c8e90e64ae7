// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/activation_scales.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "vitrail/base/random.h"
#include "vitrail/nn/trace.h"
#include "vitrail/quantize/activation_histogram_internal.h"
#include "vitrail/quantize/block_layers_internal.h"
#include "vitrail/tensor/param_source.h"

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

// Values with weights, and the expected error of a range by its definition.
struct Weighted {
  std::vector<float> values, weights;
  double error(double lo, double hi, double step) const {
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double x = values[i], outside = x < lo ? lo - x : x > hi ? x - hi : 0;
      sum += weights[i] * (outside > 0 ? outside * outside : step * step / 12);
    }
    return sum;
  }
  std::array<double, 2> range() const {
    const auto [min, max] = std::minmax_element(values.begin(), values.end());
    return {std::min(0.0F, *min), std::max(0.0F, *max)};
  }
};

std::vector<double> fractions_of(double bound) {
  std::vector<double> result;
  for (int i = 0; i <= 96; ++i) result.push_back(bound * std::pow(2, -i / 16.0));
  return result;
}

void expect_min_error(const Weighted& data, const ActivationHistogram& histogram) {
  const auto [min, max] = data.range();
  double min_symmetric = std::numeric_limits<double>::infinity(), min_affine = min_symmetric;
  for (const double hi : fractions_of(std::max(-min, max))) {
    min_symmetric = std::min(min_symmetric, data.error(-hi, hi, hi / 127));
  }
  for (const double lo : fractions_of(min)) {
    for (const double hi : fractions_of(max)) min_affine = std::min(min_affine, data.error(lo, hi, (hi - lo) / 255));
  }
  const AffineQuantization symmetric = histogram.quantization(DType::i8), affine = histogram.quantization(DType::u8);
  EXPECT_EQ(symmetric.dtype, DType::i8);
  EXPECT_EQ(affine.dtype, DType::u8);
  const double hi = 127.0 * symmetric.scale;
  EXPECT_LE(data.error(-hi, hi, symmetric.scale), 1.01 * min_symmetric);
  EXPECT_EQ(symmetric.zero_point, 0);
  const double lo = -double{affine.scale} * affine.zero_point, top = lo + 255.0 * affine.scale;
  EXPECT_LE(data.error(lo - affine.scale, top + affine.scale, affine.scale),
            1.01 * min_affine);  // zero is a whole value
  // The bounds are among those that are tried.
  const auto tried = [](double bound, double largest) {
    const double steps = -16 * std::log2(bound / largest);
    return std::abs(steps - std::round(steps)) < 1e-3 && steps > -0.5 && steps < 96.5;
  };
  EXPECT_TRUE(tried(hi, std::max(-min, max))) << hi;
}

TEST(ActivationHistogram, ChoosesTheRangeOfTheMinimumExpectedError) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    RandomStream random(random_key("ranges", seed));
    Weighted data;
    ActivationHistogram histogram({1, 0.25F, 3});
    for (int row = 0; row < 500; ++row) {
      const float weight = row % 7 == 0 ? 5.0F : 1.0F;
      std::vector<float> x;
      for (const float importance : {1.0F, 0.25F, 3.0F}) {
        double value = random.normal();
        if (seed % 2 == 1) value = std::abs(value) * value;
        if (seed % 3 == 1) value = std::max(value, -0.3);
        if (random.uniform() < 0.01) value *= 20;
        x.push_back(static_cast<float>(value));
        data.values.push_back(x.back());
        data.weights.push_back(weight * importance);
      }
      histogram.add(x.data(), 1, weight);
    }
    expect_min_error(data, histogram);
  }
}

TEST(ActivationHistogram, AWeightIsARepetition) {
  const std::vector<float> common = skewed_values(0), outlier{40};
  const auto chosen_with = [&](float weight, int repetitions) {
    ActivationHistogram histogram({1});
    histogram.add(common.data(), static_cast<int64_t>(common.size()), 1);
    for (int i = 0; i < repetitions; ++i) histogram.add(outlier.data(), 1, weight);
    return histogram.quantization(DType::u8).scale;
  };
  EXPECT_EQ(chosen_with(2000, 1), chosen_with(1, 2000));
  EXPECT_GT(chosen_with(2000, 1), 2 * chosen_with(1e-4F, 1));
}

// An outlier that does not count: the bounds end at a 64th of it.
TEST(ActivationHistogram, TriesBoundsDownToA64thOfTheLargestValue) {
  ActivationHistogram histogram({1, 0});
  EXPECT_EQ(histogram.channels(), 2);
  std::vector<float> rows;
  for (int i = 0; i < 100; ++i) rows.insert(rows.end(), {static_cast<float>(i % 11 - 5) / 5, 640});
  histogram.add(rows.data(), 100, 1);
  EXPECT_NEAR(histogram.quantization(DType::i8).scale, 10.0 / 127, 1e-6);
  const AffineQuantization affine = histogram.quantization(DType::u8);
  EXPECT_NEAR(affine.scale * static_cast<float>(255 - affine.zero_point), 10, affine.scale) << "the upper bound";
  EXPECT_NEAR(affine.scale * static_cast<float>(affine.zero_point), 1, 0.1) << "the lower bound, of the other channel";
}

TEST(ActivationHistogram, ARangeOfOneSignHasItsZeroAtTheEnd) {
  std::vector<float> positive;
  for (int i = 0; i <= 255; ++i) positive.push_back(static_cast<float>(i) / 51);
  const AffineQuantization above = chosen(positive, DType::u8);
  EXPECT_NEAR(above.scale, 5.0 / 255, 1e-6);
  EXPECT_EQ(above.zero_point, 0);
  for (float& x : positive) x = -x;
  const AffineQuantization below = chosen(positive, DType::u8);
  EXPECT_NEAR(below.scale, 5.0 / 255, 1e-6);
  EXPECT_EQ(below.zero_point, 255);
  EXPECT_NEAR(chosen(positive, DType::i8).scale, 5.0 / 127, 1e-6);
}

TEST(ActivationHistogram, NothingAndZerosAreNoValues) {
  ActivationHistogram histogram({1});
  const float one = 1, zero = 0;
  histogram.add(&one, 0, 1);
  histogram.add(&zero, 1, 1);
  EXPECT_EQ(histogram.quantization(DType::i8).scale, 1);
  std::vector<float> values(1000);
  for (int i = 0; i < 1000; ++i) values[i] = static_cast<float>(i % 201 - 100) / 100;
  histogram.add(values.data(), 1000, 1);
  EXPECT_NEAR(histogram.quantization(DType::i8).scale, 1.0 / 127, 1e-6);
}

// Histograms of the traced inputs, with the importance ‖W_:c‖² of each channel; tokens that the head reads count as
// all others together.
TEST(ActivationScales, AreThoseOfTheInputsTheTokensAndTheWeights) {
  for (const std::string fixture : {"timm_token", "timm_avg", "timm_distilled"}) {
    const models::VisionTransformer model = model_of(fixture);
    const int64_t head_tokens = model.num_head_tokens();
    const Tensor first = input_of(fixture), second = Tensor::randn(first.shape(), 3);
    std::map<std::string, std::vector<Tensor>> traced;
    {
      const nn::TraceScope scope(
          [&](const std::string& point, const Tensor& x) { traced[point].push_back(x.clone()); });
      for (const Tensor& images : {first, second}) model.forward_features(images);
    }
    for (const DType dtype : {DType::i8, DType::u8}) {
      const auto got = activation_scales(model, {first, second}, dtype);
      for (int64_t block = 0; block < model.config().depth; ++block) {
        for (const auto& [layer, point] : traced_inputs(model, block)) {
          const Tensor weight = model.parameter(layer + ".weight").to(DType::f32).contiguous();
          const int64_t in = weight.size(1);
          std::vector<float> importance(static_cast<size_t>(in));
          for (int64_t i = 0; i < weight.numel(); ++i) {
            importance[i % in] += weight.data<float>()[i] * weight.data<float>()[i];
          }
          ActivationHistogram histogram(importance);
          for (const Tensor& x : traced.at(point)) {
            const int64_t tokens = x.size(1);
            for (int64_t row = 0; row < x.size(0) * tokens; ++row) {
              const bool of_head = row % tokens < head_tokens;
              const float weight_of_row =
                  of_head ? static_cast<float>(tokens - head_tokens) / static_cast<float>(head_tokens) : 1;
              histogram.add(x.data<float>() + row * in, 1, weight_of_row);
            }
          }
          const AffineQuantization want = histogram.quantization(dtype);
          EXPECT_NEAR(got.at(layer).scale, want.scale, 0.05 * want.scale) << fixture << " " << layer;
          EXPECT_NEAR(got.at(layer).zero_point, want.zero_point, 8) << fixture << " " << layer;
          EXPECT_EQ(got.at(layer).dtype, dtype);
        }
      }
      ActivationHistogram pixels({1});
      for (const Tensor& images : {first, second}) pixels.add(images.data<float>(), images.numel(), 1);
      EXPECT_EQ(got.at("patch_embed.proj").scale, pixels.quantization(dtype).scale);
      EXPECT_EQ(got.at("patch_embed.proj").zero_point, pixels.quantization(dtype).zero_point);
    }
  }
}

TEST(ActivationScales, ErrorsNameTheTypeAndTheLayer) {
  const models::VisionTransformer model = model_of("timm_token");
  const Tensor image = input_of("timm_token").clone();
  EXPECT_ERROR(testing::error_of([&] { activation_scales(model, {image}, DType::f32); }), "activations", "f32");
  image.data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_ERROR(testing::error_of([&] { activation_scales(model, {image}, DType::u8); }), "patch_embed.proj",
               "NaN or infinity in images");
  EXPECT_ERROR(testing::error_of([&] { activation_scales(model, {image}, DType::u8, {"patch_embed.proj"}); }),
               "blocks.0.attn.qkv", "NaN or infinity in blocks.0.norm1");
}

// A norm of the pixels' patches hides the pixels from the projection.
TEST(ActivationScales, OfThePatchEmbeddingAreForModelsThatReadPixels) {
  for (const auto& [norm, reads] : {std::pair{models::PatchNorm::none, true},
                                    {models::PatchNorm::pre, false},
                                    {models::PatchNorm::post, true},
                                    {models::PatchNorm::both, false}}) {
    models::VisionTransformerConfig config = model_of("timm_token").config();
    config.patch_norm = norm;
    RandomParams random(1);
    const models::VisionTransformer model(config, ParamSource(random));
    const auto scales = activation_scales(model, {input_of("timm_token")}, DType::i8);
    EXPECT_EQ(scales.count("patch_embed.proj"), reads ? 1u : 0u) << static_cast<int>(norm);
    EXPECT_EQ(scales.size(), reads ? 9u : 8u);
  }
}

// An outlier of the class token counts as one of every other token would: its weight keeps it in the range.
TEST(ActivationScales, KeepOutliersOfTheTokensThatTheHeadReads) {
  models::VisionTransformer model = model_of("timm_token");
  model.requires_grad(true);  // makes parameters that are a mapped file's writable
  model.requires_grad(false);
  model.parameter("cls_token").data<float>()[3] += 300;
  const Tensor images = input_of("timm_token");
  Tensor traced;
  {
    const nn::TraceScope scope([&](const std::string& point, const Tensor& x) {
      if (point == "blocks.0.norm1") traced = x.clone();
    });
    model.forward_features(images);
  }
  const Tensor weight = model.parameter("blocks.0.attn.qkv.weight");
  std::vector<float> importance(18);
  for (int64_t i = 0; i < weight.numel(); ++i) importance[i % 18] += weight.data<float>()[i] * weight.data<float>()[i];
  const auto scale_with = [&](float weight_of_class) {
    ActivationHistogram histogram(importance);
    for (int64_t row = 0; row < traced.size(0) * 17; ++row) {
      histogram.add(traced.data<float>() + row * 18, 1, row % 17 == 0 ? weight_of_class : 1);
    }
    return histogram.quantization(DType::i8).scale;
  };
  const float got = activation_scales(model, {images}, DType::i8).at("blocks.0.attn.qkv").scale;
  EXPECT_NEAR(got, scale_with(16), 0.03 * scale_with(16));
}

}  // namespace
}  // namespace vitrail::quantize
