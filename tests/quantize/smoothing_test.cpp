// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/smoothing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/golden.h"
#include "tests/support/models.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/random.h"
#include "vitrail/nn/trace.h"
#include "vitrail/quantize/block_layers_internal.h"
#include "vitrail/quantize/rotation_internal.h"
#include "vitrail/quantize/sensitivity.h"
#include "vitrail/quantize/smoothing_factors_internal.h"

namespace vitrail::quantize {
namespace {

using testing::input_of;
using testing::model_of;
using testing::writable_model_of;

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

// The DCT-II with the random signs of its columns.
std::vector<double> expected_rotation(int64_t n) {
  RandomStream random(
      random_key("spreading"
                 "_turn"));
  std::vector<double> rotation(static_cast<size_t>(n * n));
  for (int64_t column = 0; column < n; ++column) {
    const double sign = random.uniform() < 0.5 ? -1 : 1;
    for (int64_t row = 0; row < n; ++row) {
      const double angle = std::numbers::pi / static_cast<double>(n) * (static_cast<double>(column) + 0.5);
      rotation[row * n + column] = sign * std::sqrt((row == 0 ? 1.0 : 2.0) / static_cast<double>(n)) *
                                   std::cos(angle * static_cast<double>(row));
    }
  }
  return rotation;
}

// W_v → R W_v and b_v → R b_v in each head, W_proj → W_proj Rᵀ in the head's columns; queries and keys stay.
TEST(RotateValues, MultipliesEachHeadByTheDct) {
  for (const std::string fixture : {"timm_token", "timm_no_qkv_bias", "timm_dinov3_qkvb"}) {
    models::VisionTransformer model = writable_model_of(fixture);
    const models::VisionTransformer before = writable_model_of(fixture);
    rotate_values(model);
    for (int64_t block = 0; block < model.config().depth; ++block) {
      const std::string attention = "blocks." + std::to_string(block) + ".attn";
      const ValueProjection values = value_projection(model, attention), original = value_projection(before, attention);
      const Tensor proj = model.parameter(attention + ".proj.weight"),
                   old_proj = before.parameter(attention + ".proj.weight");
      const int64_t inner = proj.size(1), dim = inner / model.config().num_heads, in = values.weight.size(1);
      const std::vector<double> rotation = expected_rotation(dim);
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t head = i / dim * dim;
        const auto turned = [&](const auto& old) {
          double sum = 0;
          for (int64_t k = 0; k < dim; ++k) sum += rotation[i % dim * dim + k] * old(head + k);
          return sum;
        };
        for (int64_t c = 0; c < in; ++c) {
          EXPECT_NEAR(values.weight.data<float>()[i * in + c],
                      turned([&](int64_t r) { return original.weight.data<float>()[r * in + c]; }), 1e-5);
        }
        for (int64_t r = 0; r < proj.size(0); ++r) {
          EXPECT_NEAR(proj.data<float>()[r * inner + i],
                      turned([&](int64_t c) { return old_proj.data<float>()[r * inner + c]; }), 1e-5);
        }
        if (values.bias.defined()) {
          EXPECT_NEAR(values.bias.data<float>()[i], turned([&](int64_t r) { return original.bias.data<float>()[r]; }),
                      1e-5);
        }
      }
      const Tensor qkv = model.parameter(attention + ".qkv.weight"), old = before.parameter(attention + ".qkv.weight");
      EXPECT_TRUE(testing::close(qkv.narrow(0, 0, 2 * inner), old.narrow(0, 0, 2 * inner), 0));
    }
  }
}

// Every eighth patch token of each image, from the first one on.
InputSample sampled(const std::vector<Tensor>& traced, int64_t head_tokens) {
  InputSample sample;
  for (const Tensor& x : traced) {
    const Tensor centered = centered_tokens(x, head_tokens);
    for (int64_t row = 0; row < x.size(0) * x.size(1); ++row) {
      const int64_t token = row % x.size(1) - head_tokens, in = x.size(2);
      if (token < 0 || token % 8 != 0) continue;
      const float *const a = x.data<float>() + row * in, *const d = centered.data<float>() + row * in;
      sample.activations.insert(sample.activations.end(), a, a + in);
      sample.centered.insert(sample.centered.end(), d, d + in);
    }
  }
  return sample;
}

TEST(SmoothActivations, DividesProducersAndMultipliesColumnsByTheFactors) {
  for (const std::string fixture : {"timm_token", "timm_no_qkv_bias"}) {
    models::VisionTransformer smoothed = writable_model_of(fixture), want = writable_model_of(fixture);
    const Tensor first = input_of(fixture), second = Tensor::randn(first.shape(), 5);
    smooth_activations(smoothed, {first, second});
    rotate_values(want);
    std::map<std::string, std::vector<Tensor>> traced;
    {
      const nn::TraceScope scope(
          [&](const std::string& point, const Tensor& x) { traced[point].push_back(x.clone()); });
      for (const Tensor& images : {first, second}) want.forward_features(images);
    }
    std::map<std::string, std::vector<float>> factors;
    for (int64_t block = 0; block < want.config().depth; ++block) {
      for (const auto& [layer, point] : traced_inputs(want, block)) {
        if (layer.ends_with("fc2")) continue;  // an activation is between it and its producer
        factors[layer] =
            smoothing_factors(sampled(traced.at(point), want.num_head_tokens()), want.parameter(layer + ".weight"));
      }
    }
    for (const auto& [layer, s] : factors) {
      const auto divide = [&s = s](const Tensor& producer) {
        const int64_t width = producer.numel() / producer.size(0);
        for (int64_t i = 0; i < producer.numel(); ++i) producer.data<float>()[i] /= s[static_cast<size_t>(i / width)];
      };
      const std::string block = layer.substr(0, 8);
      if (layer.ends_with("proj")) {
        const ValueProjection values = value_projection(want, block + ".attn");
        divide(values.weight);
        if (values.bias.defined()) divide(values.bias);
      } else {
        const std::string norm = block + (layer.ends_with("qkv") ? ".norm1" : ".norm2");
        divide(want.parameter(norm + ".weight"));
        divide(want.parameter(norm + ".bias"));
      }
      const Tensor weight = want.parameter(layer + ".weight");
      const int64_t in = weight.size(1);
      for (int64_t i = 0; i < weight.numel(); ++i) weight.data<float>()[i] *= s[static_cast<size_t>(i % in)];
    }
    for (const nn::NamedTensor& parameter : want.named_parameters()) {
      EXPECT_TRUE(testing::close(smoothed.parameter(parameter.name), parameter.tensor, 1e-6, 1e-5))
          << fixture << ": " << parameter.name;
      EXPECT_FALSE(autograd::requires_grad(smoothed.parameter(parameter.name)));
    }
  }
}

// The parameters that change are the producers of the inputs and the weights of the layers.
TEST(SmoothActivations, ChangesWhatTheKindOfBlockAllows) {
  using Names = std::set<std::string>;
  const Names values{"attn.qkv.weight", "attn.qkv.bias", "attn.proj.weight"},
      norms{"norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias", "mlp.fc1.weight"};
  Names pre_norm = values;
  pre_norm.insert(norms.begin(), norms.end());
  Names inner_norm = norms;
  inner_norm.insert({"attn.qkv.weight", "attn.norm.weight", "attn.norm.bias", "attn.proj.weight"});
  const Names rms{"norm1.weight", "norm2.weight", "attn.qkv.weight", "attn.proj.weight", "mlp.fc1.weight"};
  for (const auto& [fixture, want] : {std::pair<std::string, Names>{"timm_token", pre_norm},
                                      {"torch_encoder_post_norm", values},
                                      {"timm_post_norm", values},
                                      {"timm_eva02_clip_base", inner_norm},
                                      {"timm_aimv2", rms}}) {
    models::VisionTransformer model = writable_model_of(fixture);
    const Tensor input = input_of(fixture), before = model.forward(input);
    std::map<std::string, Tensor> original;
    for (const nn::NamedTensor& parameter : model.named_parameters())
      original[parameter.name] = parameter.tensor.clone();
    smooth_activations(model, {input});
    EXPECT_TRUE(testing::close(model.forward(input), before, 1e-4, 1e-4)) << fixture;
    Names changed;
    for (const nn::NamedTensor& parameter : model.named_parameters()) {
      if (testing::close(parameter.tensor, original.at(parameter.name), 1e-7)) continue;
      EXPECT_TRUE(parameter.name.starts_with("blocks.")) << fixture << ": " << parameter.name;
      changed.insert(parameter.name.substr(9));
    }
    EXPECT_EQ(changed, want) << fixture;
  }
}

}  // namespace
}  // namespace vitrail::quantize
