#include "vitrail/infer/int8_rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"

namespace vitrail::infer {
namespace {

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

// Inputs that go along with each other make up for each other's rounding.
TEST(RoundWeights, BringsTheLayersNearerThanTheNearestNumbers) {
  for (const std::string fixture : {"timm_token", "timm_swiglu", "torch_encoder_post_norm"}) {
    const Tensor input = input_of(fixture);
    const Tensor exact = model_of(fixture).forward(input);
    models::VisionTransformer nearest = model_of(fixture), rounded = model_of(fixture);
    nearest.requires_grad(true);  // to own what is written to
    nearest.requires_grad(false);
    const std::map<std::string, Tensor> before = round_weights(rounded, {input});
    ASSERT_EQ(before.size(), static_cast<size_t>(4 * rounded.config().depth));
    for (const auto& [layer, weight] : before) {
      const Tensor parameter = nearest.parameter(layer + ".weight");
      EXPECT_TRUE(testing::close(weight, parameter, 0)) << layer;
      parameter.copy_(weights::from_int8(to_int8(parameter), DType::f32));
    }
    auto off = [&](const models::VisionTransformer& model) {
      return std::sqrt(testing::squares_apart(model.forward(input), exact));
    };
    EXPECT_LT(off(rounded), 0.7 * off(nearest)) << fixture;
  }
}

// So that what is stored, read and packed is what was chosen.
TEST(RoundWeights, LeavesWhatPackingFindsAgain) {
  models::VisionTransformer model = model_of("timm_token");
  for (const auto& [layer, before] : round_weights(model, {input_of("timm_token")})) {
    const Tensor weight = model.parameter(layer + ".weight");
    const weights::Int8Weight packed = to_int8(weight);
    EXPECT_TRUE(testing::close(weights::from_int8(packed, DType::f32), weight, 0, 1e-6)) << layer;
    EXPECT_FALSE(testing::close(weight, before, 1e-6)) << layer;
  }
}

}  // namespace
}  // namespace vitrail::infer
