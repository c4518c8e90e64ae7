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

TEST(ToInt8, GivesBackTheNearestSteps) {
  const Tensor weight = Tensor::randn({5, 40}, 1);
  weight.select(0, 2).copy_(Tensor::zeros({40}));
  const QuantizedTensor packed = to_int8(weight);
  const Tensor back = dequantize(packed);
  for (int64_t i = 0; i < weight.numel(); ++i) {
    const float half_step = packed.scales.data<float>()[i / 40] / 2;
    EXPECT_NEAR(back.data<float>()[i], weight.data<float>()[i], half_step * 1.0001F) << i;
  }
  const QuantizedTensor again = to_int8(back);
  EXPECT_TRUE(testing::close(again.values, packed.values, 0));
}

TEST(ToInt8, AnElementThatIsNotFiniteIsNamed) {
  const Tensor weight = Tensor::randn({5, 40}, 1);
  weight.data<float>()[3 * 40 + 7] = std::numeric_limits<float>::infinity();
  const std::string message = testing::error_of([&] { to_int8(weight); });
  EXPECT_TRUE(testing::contains(message, "int8 weight [3, 7]")) << message;
}

// Quantised weights by layer.
using Weights = std::map<std::string, QuantizedTensor>;

models::VisionTransformer owned_model_of(const std::string& fixture) {
  models::VisionTransformer model = model_of(fixture);
  model.requires_grad(true);  // to own what is written to
  model.requires_grad(false);
  return model;
}

// The distance of a session's logits from those of the fixture's model.  `weights` replace those of their layers.
double off(const std::string& fixture, const models::VisionTransformer& model, const SessionOptions& options,
           const Weights& weights = {}) {
  std::map<std::string, Tensor> replaced;
  for (const auto& [layer, weight] : weights) replaced[layer + ".weight"] = Tensor::from_quantized(weight);
  nn::CopiedParams copies(model, replaced);
  const Session session(models::VisionTransformer(model.config(), ParamSource(copies)), options);
  const Tensor input = input_of(fixture);
  return std::sqrt(testing::squares_apart(session.logits(input), model_of(fixture).forward(input)));
}

// Inputs that go along with each other make up for each other's rounding.
TEST(RoundWeights, BringsTheLayersNearerThanTheNearestNumbers) {
  for (const std::string fixture : {"timm_token", "timm_swiglu", "torch_encoder_post_norm"}) {
    models::VisionTransformer nearest = owned_model_of(fixture), rounded = model_of(fixture);
    const std::map<std::string, Tensor> before = gptq_round(rounded, {input_of(fixture)});
    ASSERT_EQ(before.size(), static_cast<size_t>(4 * rounded.config().depth));
    Weights of_rounded, of_nearest;
    for (const auto& [layer, weight] : before) {
      const Tensor parameter = nearest.parameter(layer + ".weight");
      EXPECT_TRUE(testing::close(weight, parameter, 0)) << layer;
      parameter.copy_(dequantize(to_int8(parameter)));
      of_rounded[layer] = with_correction(weight, rounded.parameter(layer + ".weight"));
      of_nearest[layer] = with_correction(weight, parameter);
    }
    const double corrected = off(fixture, rounded, {.precision = Precision::int8}, of_rounded);
    EXPECT_LT(corrected, 0.6 * off(fixture, nearest, {.precision = Precision::int8})) << fixture;
    // Few tokens and random weights: of the SwiGLU model the activations' rounding is most of it.
    if (fixture == "timm_swiglu") continue;
    EXPECT_LT(corrected, 0.9 * off(fixture, nearest, {.precision = Precision::int8}, of_nearest)) << fixture;
  }
}

// So that what is stored, read and packed is what was chosen.
TEST(RoundWeights, LeavesWhatPackingFindsAgain) {
  models::VisionTransformer model = model_of("timm_token");
  for (const auto& [layer, before] : gptq_round(model, {input_of("timm_token")})) {
    const Tensor weight = model.parameter(layer + ".weight");
    const QuantizedTensor packed = to_int8(weight);
    EXPECT_TRUE(testing::close(dequantize(packed), weight, 0, 1e-6)) << layer;
    EXPECT_FALSE(testing::close(weight, before, 1e-6)) << layer;
  }
}

// Rounded weights and their correction add up to the original weights, to half a scale of the correction.
TEST(WithCorrection, IsTheOriginalWeightToHalfAScale) {
  models::VisionTransformer model = model_of("timm_token");
  for (const auto& [layer, before] : gptq_round(model, {input_of("timm_token")})) {
    const Tensor after = model.parameter(layer + ".weight");
    const QuantizedTensor weight = with_correction(before, after);
    const Tensor corrected = dequantize(weight);
    for (int64_t i = 0; i < corrected.numel(); ++i) {
      const float half_scale = weight.correction->scales.data<float>()[i / corrected.size(1)] / 2;
      EXPECT_NEAR(corrected.data<float>()[i], before.data<float>()[i], half_scale * 1.001F) << i;
    }
  }
}

// A session in int8 is nearer to the original model with the correction than without, and one in fp32 has it back.
TEST(WithCorrection, BringsASessionNearer) {
  for (const std::string fixture : {"timm_token", "timm_swiglu", "timm_avg", "timm_distilled"}) {
    models::VisionTransformer model = model_of(fixture);
    Weights weights;
    for (const auto& [layer, before] : gptq_round(model, {input_of(fixture)})) {
      weights[layer] = with_correction(before, model.parameter(layer + ".weight"));
    }
    const double without = off(fixture, model, {.precision = Precision::int8});
    EXPECT_LT(off(fixture, model, {.precision = Precision::int8}, weights), 0.9 * without) << fixture;
    EXPECT_LT(off(fixture, model, {}, weights), 0.05 * without) << fixture;
  }
}

}  // namespace
}  // namespace vitrail::quantize
