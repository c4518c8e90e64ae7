// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "vitrail/infer/session.h"
#include "vitrail/nn/copied_params.h"

namespace vitrail::quantize {
using namespace infer;
namespace {

using kernels::Precision;
using testing::input_of;
using testing::model_of;

TEST(ToInt8, RoundsToNearestAndRestoresADequantizedWeight) {
  const Tensor weight = Tensor::randn({5, 40}, 1);
  weight.select(0, 2).copy_(Tensor::zeros({40}));
  const QuantizedTensor quantized = to_int8(weight);
  const Tensor dequantized = dequantize(quantized);
  for (int64_t i = 0; i < weight.numel(); ++i) {
    const float half_scale = quantized.scales.data<float>()[i / 40] / 2;
    EXPECT_NEAR(dequantized.data<float>()[i], weight.data<float>()[i], half_scale * 1.0001F) << i;
  }
  EXPECT_TRUE(testing::close(to_int8(dequantized).values, quantized.values, 0));
}

TEST(ToInt8, ThrowsAnErrorThatNamesAnElementThatIsNotFinite) {
  const Tensor weight = Tensor::randn({5, 40}, 1);
  weight.data<float>()[3 * 40 + 7] = std::numeric_limits<float>::infinity();
  const std::string message = testing::error_of([&] { to_int8(weight); });
  EXPECT_TRUE(testing::contains(message, "int8 weight [3, 7]")) << message;
}

// Quantised weights by layer.
using Weights = std::map<std::string, QuantizedTensor>;

models::VisionTransformer writable_model_of(const std::string& fixture) {
  models::VisionTransformer model = model_of(fixture);
  model.requires_grad(true);  // makes parameters that are a mapped file's writable
  model.requires_grad(false);
  return model;
}

// The L2 error of a session's logits.  `weights` replace those of their layers in the model.
double error_of(const std::string& fixture, const models::VisionTransformer& model, const SessionOptions& options,
                const Weights& weights = {}) {
  std::map<std::string, Tensor> replaced;
  for (const auto& [layer, weight] : weights) replaced[layer + ".weight"] = Tensor::from_quantized(weight);
  nn::CopiedParams copies(model, replaced);
  const Session session(models::VisionTransformer(model.config(), ParamSource(copies)), options);
  const Tensor input = input_of(fixture);
  return std::sqrt(testing::squared_error(session.logits(input), model_of(fixture).forward(input)));
}

// Weights of correlated inputs compensate each other's rounding errors.
TEST(GptqRound, HasLessErrorThanRoundingToNearest) {
  for (const std::string fixture : {"timm_token", "timm_swiglu", "torch_encoder_post_norm"}) {
    models::VisionTransformer nearest = writable_model_of(fixture), rounded = model_of(fixture);
    const std::map<std::string, Tensor> originals = gptq_round(rounded, {input_of(fixture)});
    ASSERT_EQ(originals.size(), static_cast<size_t>(4 * rounded.config().depth));
    Weights rounded_weights, nearest_weights;
    for (const auto& [layer, original] : originals) {
      const Tensor parameter = nearest.parameter(layer + ".weight");
      EXPECT_TRUE(testing::close(original, parameter, 0)) << layer;
      parameter.copy_(dequantize(to_int8(parameter)));
      rounded_weights[layer] = with_correction(original, rounded.parameter(layer + ".weight"));
      nearest_weights[layer] = with_correction(original, parameter);
    }
    const double corrected = error_of(fixture, rounded, {.precision = Precision::int8}, rounded_weights);
    EXPECT_LT(corrected, 0.6 * error_of(fixture, nearest, {.precision = Precision::int8})) << fixture;
    // In the SwiGLU model, with few tokens and random weights, most of the error is that of the activations.
    if (fixture == "timm_swiglu") continue;
    EXPECT_LT(corrected, 0.9 * error_of(fixture, nearest, {.precision = Precision::int8}, nearest_weights)) << fixture;
  }
}

TEST(GptqRound, InputsThatAreNotFiniteAreAnError) {
  models::VisionTransformer model = model_of("timm_token");
  const Tensor images = input_of("timm_token").clone();
  images.data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  const std::string message = testing::error_of([&] { gptq_round(model, {images}); });
  EXPECT_TRUE(testing::contains(message, "finite inputs, got NaN or infinity in blocks.0")) << message;
}

// Files and packing then keep the values that GPTQ chose.
TEST(GptqRound, LeavesWeightsThatQuantizationRestores) {
  models::VisionTransformer model = model_of("timm_token");
  for (const auto& [layer, original] : gptq_round(model, {input_of("timm_token")})) {
    const Tensor weight = model.parameter(layer + ".weight");
    EXPECT_TRUE(testing::close(dequantize(to_int8(weight)), weight, 0, 1e-6)) << layer;
    EXPECT_FALSE(testing::close(weight, original, 1e-6)) << layer;
  }
}

TEST(WithCorrection, IsTheOriginalWeightWithinHalfAScaleOfTheCorrection) {
  models::VisionTransformer model = model_of("timm_token");
  for (const auto& [layer, original] : gptq_round(model, {input_of("timm_token")})) {
    const Tensor after = model.parameter(layer + ".weight");
    const QuantizedTensor weight = with_correction(original, after);
    const Tensor corrected = dequantize(weight);
    for (int64_t i = 0; i < corrected.numel(); ++i) {
      const float half_scale = weight.correction->scales.data<float>()[i / corrected.size(1)] / 2;
      constexpr float kRounding = 1.2e-7F;  // two f32 roundings of values below 1
      EXPECT_NEAR(corrected.data<float>()[i], original.data<float>()[i], half_scale + kRounding) << i;
    }
  }
}

// The correction reduces the error of an int8 session.  An fp32 session applies it to all tokens.
TEST(WithCorrection, ReducesTheErrorOfASession) {
  for (const std::string fixture :
       {"timm_token", "timm_swiglu", "timm_avg", "timm_distilled", "timm_dinov3_qkvb", "timm_eva02_clip_base"}) {
    models::VisionTransformer model = model_of(fixture);
    Weights weights;
    for (const auto& [layer, original] : gptq_round(model, {input_of(fixture)})) {
      weights[layer] = with_correction(original, model.parameter(layer + ".weight"));
    }
    const double without = error_of(fixture, model, {.precision = Precision::int8});
    EXPECT_LT(error_of(fixture, model, {.precision = Precision::int8}, weights), 0.9 * without) << fixture;
    EXPECT_LT(error_of(fixture, model, {}, weights), 0.05 * without) << fixture;
  }
}

}  // namespace
}  // namespace vitrail::quantize
