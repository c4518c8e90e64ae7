// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "vitrail/infer/session.h"

namespace vitrail::quantize {
using namespace infer;
namespace {

using kernels::Precision;
using testing::input_of;
using testing::model_of;

TEST(ToInt8, GivesBackTheNearestSteps) {
  const Tensor weight = Tensor::randn({5, 40}, 1);
  weight.select(0, 2).copy_(Tensor::zeros({40}));
  const weights::Int8Weight packed = to_int8(weight);
  const Tensor back = weights::from_int8(packed, DType::f32);
  for (int64_t i = 0; i < weight.numel(); ++i) {
    const float half_step = packed.scales.data<float>()[i / 40] / 2;
    EXPECT_NEAR(back.data<float>()[i], weight.data<float>()[i], half_step * 1.0001F) << i;
  }
  const weights::Int8Weight again = to_int8(back);
  EXPECT_TRUE(testing::close(again.numbers, packed.numbers, 0));
}

TEST(ToInt8, AnElementThatIsNotFiniteIsNamed) {
  const Tensor weight = Tensor::randn({5, 40}, 1);
  weight.data<float>()[3 * 40 + 7] = std::numeric_limits<float>::infinity();
  const std::string message = testing::error_of([&] { to_int8(weight); });
  EXPECT_TRUE(testing::contains(message, "int8 weight [3, 7]")) << message;
}

using Rests = std::map<std::string, weights::Int8Weight>;

models::VisionTransformer owned_model_of(const std::string& fixture) {
  models::VisionTransformer model = model_of(fixture);
  model.requires_grad(true);  // to own what is written to
  model.requires_grad(false);
  return model;
}

// How far a session's answers are from the fixture's.
double off(const std::string& fixture, const models::VisionTransformer& model, const SessionOptions& options) {
  models::VisionTransformer copy = owned_model_of(fixture);
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    copy.parameter(parameter.name).copy_(parameter.tensor);
  }
  const Tensor input = input_of(fixture);
  return std::sqrt(
      testing::squares_apart(Session(std::move(copy), options).logits(input), model_of(fixture).forward(input)));
}

// Inputs that go along with each other make up for each other's rounding.
TEST(RoundWeights, BringsTheLayersNearerThanTheNearestNumbers) {
  for (const std::string fixture : {"timm_token", "timm_swiglu", "torch_encoder_post_norm"}) {
    models::VisionTransformer nearest = owned_model_of(fixture), rounded = model_of(fixture);
    const std::map<std::string, Tensor> before = gptq_round(rounded, {input_of(fixture)});
    ASSERT_EQ(before.size(), static_cast<size_t>(4 * rounded.config().depth));
    Rests of_rounded, of_nearest;
    for (const auto& [layer, weight] : before) {
      const Tensor parameter = nearest.parameter(layer + ".weight");
      EXPECT_TRUE(testing::close(weight, parameter, 0)) << layer;
      parameter.copy_(weights::from_int8(to_int8(parameter), DType::f32));
      of_rounded[layer] = rounding_correction(weight, rounded.parameter(layer + ".weight"));
      of_nearest[layer] = rounding_correction(weight, parameter);
    }
    const double with_rests = off(fixture, rounded, {.precision = Precision::int8, .rests = of_rounded});
    EXPECT_LT(with_rests, 0.6 * off(fixture, nearest, {.precision = Precision::int8})) << fixture;
    // Few tokens and random weights: of the SwiGLU model the activations' rounding is most of it.
    if (fixture == "timm_swiglu") continue;
    EXPECT_LT(with_rests, 0.9 * off(fixture, nearest, {.precision = Precision::int8, .rests = of_nearest})) << fixture;
  }
}

// So that what is stored, read and packed is what was chosen.
TEST(RoundWeights, LeavesWhatPackingFindsAgain) {
  models::VisionTransformer model = model_of("timm_token");
  for (const auto& [layer, before] : gptq_round(model, {input_of("timm_token")})) {
    const Tensor weight = model.parameter(layer + ".weight");
    const weights::Int8Weight packed = to_int8(weight);
    EXPECT_TRUE(testing::close(weights::from_int8(packed, DType::f32), weight, 0, 1e-6)) << layer;
    EXPECT_FALSE(testing::close(weight, before, 1e-6)) << layer;
  }
}

// Rounded weights and what rounding left make up the weights that were, to a step of the rest.
TEST(RestOfRounding, IsWhatTheWeightHasLost) {
  models::VisionTransformer model = model_of("timm_token");
  for (const auto& [layer, before] : gptq_round(model, {input_of("timm_token")})) {
    const Tensor after = model.parameter(layer + ".weight");
    const weights::Int8Weight rest = rounding_correction(before, after);
    const Tensor left = weights::from_int8(rest, DType::f32);
    for (int64_t i = 0; i < left.numel(); ++i) {
      const float half_step = rest.scales.data<float>()[i / left.size(1)] / 2;
      EXPECT_NEAR(after.data<float>()[i] + left.data<float>()[i], before.data<float>()[i], half_step * 1.001F) << i;
    }
  }
}

// A session in int8 is nearer to the model that was with the rests than without, and one in fp32 has it back.
TEST(RestOfRounding, BringsASessionNearer) {
  for (const std::string fixture : {"timm_token", "timm_swiglu", "timm_avg", "timm_distilled"}) {
    models::VisionTransformer model = model_of(fixture);
    Rests rests;
    for (const auto& [layer, before] : gptq_round(model, {input_of(fixture)})) {
      rests[layer] = rounding_correction(before, model.parameter(layer + ".weight"));
    }
    const double without = off(fixture, model, {.precision = Precision::int8});
    EXPECT_LT(off(fixture, model, {.precision = Precision::int8, .rests = rests}), 0.9 * without) << fixture;
    EXPECT_LT(off(fixture, model, {.rests = rests}), 0.05 * without) << fixture;
  }
}

TEST(RestOfRounding, OfAnotherShapeIsAnError) {
  SessionOptions options;
  options.rests["blocks.0.mlp.fc1"] = to_int8(Tensor::randn({3, 4}, 1));
  const std::string message = testing::error_of([&] { Session(model_of("timm_token"), options); });
  EXPECT_TRUE(testing::contains(message, "blocks.0.mlp.fc1")) << message;

  const Tensor weight = model_of("timm_token").parameter("blocks.0.mlp.fc1.weight");
  weights::Int8Weight short_of_steps = to_int8(Tensor::zeros(weight.shape()));
  short_of_steps.scales = Tensor::zeros({weight.size(0) - 1});
  options.rests["blocks.0.mlp.fc1"] = short_of_steps;
  EXPECT_THROW(Session(model_of("timm_token"), options), Error);
}

}  // namespace
}  // namespace vitrail::quantize
