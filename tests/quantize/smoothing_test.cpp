// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/smoothing.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/golden.h"
#include "tests/support/models.h"
#include "vitrail/quantize/rotation.h"
#include "vitrail/quantize/sensitivity.h"

namespace vitrail::quantize {
namespace {

using testing::input_of;
using testing::model_of;

// Makes parameters that are a mapped file's writable.
models::VisionTransformer writable_model_of(const std::string& fixture) {
  models::VisionTransformer model = model_of(fixture);
  model.requires_grad(true);
  model.requires_grad(false);
  return model;
}

constexpr const char* kFixtures[] = {"timm_token",       "timm_layer_scale",        "timm_swiglu",
                                     "timm_qk_norm",     "timm_no_qkv_bias",        "torch_encoder_post_norm",
                                     "timm_dinov3_qkvb", "timm_eva02_clip_enormous"};

TEST(RotateValues, KeepsTheFunctionOfTheModel) {
  for (const std::string fixture : kFixtures) {
    models::VisionTransformer model = writable_model_of(fixture);
    const Tensor input = input_of(fixture), before = model.forward(input),
                 weight = model.parameter("blocks.0.attn.proj.weight").clone();
    rotate_values(model);
    EXPECT_TRUE(testing::close(model.forward(input), before, 1e-5, 1e-5)) << fixture;
    EXPECT_FALSE(testing::close(model.parameter("blocks.0.attn.proj.weight"), weight, 1e-3)) << fixture;
  }
}

TEST(RotateValues, LeavesModelsWithALayerNormInFrontOfTheProjection) {
  models::VisionTransformer model = writable_model_of("timm_eva02_clip_base");
  const Tensor input = input_of("timm_eva02_clip_base"), before = model.forward(input);
  rotate_values(model);
  EXPECT_TRUE(testing::close(model.forward(input), before, 0));
}

TEST(SmoothActivations, KeepsTheFunctionOfTheModel) {
  std::vector<std::string> fixtures(std::begin(kFixtures), std::end(kFixtures));
  fixtures.push_back("timm_eva02_clip_base");
  for (const std::string& fixture : fixtures) {
    models::VisionTransformer model = model_of(fixture);
    const Tensor input = input_of(fixture), before = model.forward(input),
                 weight = model.parameter("blocks.0.attn.proj.weight").clone();
    smooth_activations(model, {input});
    EXPECT_TRUE(testing::close(model.forward(input), before, 1e-5, 1e-5)) << fixture;
    EXPECT_FALSE(testing::close(model.parameter("blocks.0.attn.proj.weight"), weight, 1e-3)) << fixture;
  }
}

// What precedes the first attention is of each token alone: outliers of the class token change nothing there.
TEST(SmoothActivations, ChannelsAreThoseOfThePatchTokens) {
  std::vector<Tensor> scales;
  for (const float outlier : {0.0F, 300.0F}) {
    models::VisionTransformer model = writable_model_of("timm_token");
    model.parameter("cls_token").data<float>()[3] += outlier;
    smooth_activations(model, {input_of("timm_token")});
    scales.push_back(model.parameter("blocks.0.norm1.weight").clone());
  }
  EXPECT_TRUE(testing::close(scales[0], scales[1], 0));
}

double qkv_error(const models::VisionTransformer& model, const std::vector<Tensor>& images) {
  for (const Int8Sensitivity& item : int8_sensitivity(model, images)) {
    if (item.layer == "blocks.0.attn.qkv") return item.error;
  }
  ADD_FAILURE() << "no layer blocks.0.attn.qkv";
  return 0;
}

// A channel of 50 times the range, as in large models, leaves few int8 levels to the others.
TEST(SmoothActivations, ReducesTheErrorThatAnOutlierChannelCauses) {
  models::VisionTransformer model = writable_model_of("timm_token");
  const Tensor gamma = model.parameter("blocks.0.norm1.weight"), beta = model.parameter("blocks.0.norm1.bias"),
               qkv = model.parameter("blocks.0.attn.qkv.weight");
  gamma.data<float>()[3] *= 50;
  beta.data<float>()[3] *= 50;
  for (int64_t r = 0; r < qkv.size(0); ++r) qkv.data<float>()[r * qkv.size(1) + 3] /= 50;
  const std::vector<Tensor> images{input_of("timm_token")};
  const double before = qkv_error(model, images);
  smooth_activations(model, images);
  EXPECT_LT(qkv_error(model, images), before / 4);
}

}  // namespace
}  // namespace vitrail::quantize
