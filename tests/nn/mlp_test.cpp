// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/mlp.h"

#include "tests/nn/layer_fixture.h"
#include "tests/nn/traced_layers.h"
#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/nn/dropout.h"
#include "vitrail/nn/swiglu.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"

namespace vitrail::nn {
namespace {

using kernels::Activation;

class MlpGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(MlpGolden, EqualsTheReference) {
  const LayerFixture fixture("mlp_" + GetParam());
  const MlpConfig config{
      .in_features = fixture.get<int64_t>("in_features"),
      .hidden_features = fixture.optional<int64_t>("hidden_features"),
      .out_features = fixture.optional<int64_t>("out_features"),
      .activation = kernels::activation_from_name(fixture.optional<std::string>("act").value_or("gelu")),
      .bias = fixture.optional<bool>("bias").value_or(true),
      .norm_eps = fixture.optional<double>("norm_eps")};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Mlp layer = build(fixture, dtype, [&](const ParamSource& params) { return Mlp(config, params); });
    EXPECT_TRUE(matches(layer.forward(fixture["input"].to(dtype)), fixture["output"]));
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, MlpGolden,
                         ::testing::Values("gelu", "gelu_tanh", "silu", "relu", "quick_gelu", "hidden_out", "no_bias",
                                           "with_norm"),
                         name_of_case);

TEST(Mlp, SamNamesOnlyChangeTheParametersNames) {
  RandomParams params(1);
  const Mlp own({.in_features = 6}, ParamSource(params));
  testing::Golden renamed;
  for (const auto& [name, tensor] : own.named_parameters()) {
    renamed.tensors["lin" + name.substr(2)] = tensor;
  }
  testing::GoldenParams sam_params(renamed);
  const Mlp sam({.in_features = 6, .sam_names = true}, ParamSource(sam_params));
  sam_params.finish();
  const Tensor x = Tensor::randn({2, 3, 6}, 1);
  EXPECT_TRUE(testing::close(sam.forward(x), own.forward(x), 0));
}

// Equals the formula with the masks of both layers: leaving one of them out changes it.
TEST(Mlp, DropsAfterTheActivationAndAfterTheSecondLayer) {
  RandomParams params(1);
  Mlp layer({.in_features = 8, .dropout = 0.5}, ParamSource(params));
  layer.train();
  const RandomScope scope(3, 5);
  const Tensor x = Tensor::randn({4, 8}, 1);
  const auto mask = [](const char* path, int64_t features) {
    return ops::dropout_mask({4, features}, 0.5, random_key(path, 3, 5), {}, DType::f32);
  };
  const Tensor hidden =
      ops::linear(x, layer.parameter("fc1.weight"), layer.parameter("fc1.bias"), kernels::Activation::gelu);
  const Tensor out =
      ops::linear(ops::mul(hidden, mask("drop1", 32)), layer.parameter("fc2.weight"), layer.parameter("fc2.bias"));
  EXPECT_TRUE(testing::close(layer.forward(x), ops::mul(out, mask("drop2", 8)), 1e-6));  // 32 terms of order 0.1
  EXPECT_THROW(layer.forward(Tensor::zeros({4, 9})), Error);
  layer.train(false);
  const Tensor without = ops::linear(hidden, layer.parameter("fc2.weight"), layer.parameter("fc2.bias"));
  EXPECT_TRUE(testing::close(layer.forward(x), without, 1e-6));
}

// A norm in front of the first layer, or in front of the second.
TEST(Mlp, NormsAreWhereTheConfigurationSays) {
  const Tensor x = Tensor::randn({4, 8}, 1);
  for (const bool hidden : {false, true}) {
    RandomParams params(1);
    MlpConfig config{.in_features = 8};
    (hidden ? config.hidden_norm_eps : config.norm_eps) = 1e-3;
    const Mlp layer(config, ParamSource(params));
    const Tensor gamma = layer.parameter("norm.weight"), beta = layer.parameter("norm.bias");
    ASSERT_EQ(gamma.size(0), hidden ? 32 : 8);
    gamma.copy_(Tensor::randn(gamma.shape(), 2));
    beta.copy_(Tensor::randn(beta.shape(), 3));
    const auto norm = [&](const Tensor& t) { return ops::layer_norm(t, gamma, beta, 1e-3); };
    const Tensor activated = ops::linear(hidden ? x : norm(x), layer.parameter("fc1.weight"),
                                         layer.parameter("fc1.bias"), kernels::Activation::gelu);
    const Tensor want =
        ops::linear(hidden ? norm(activated) : activated, layer.parameter("fc2.weight"), layer.parameter("fc2.bias"));
    EXPECT_TRUE(testing::close(layer.forward(x), want, 1e-5)) << hidden;
  }
}

TEST(Activation, IsPrintedAsInPyTorch) {
  const std::pair<Activation, const char*> texts[] = {{Activation::none, "Identity()"},
                                                      {Activation::gelu, "GELU(approximate='none')"},
                                                      {Activation::gelu_tanh, "GELU(approximate='tanh')"},
                                                      {Activation::quick_gelu, "QuickGELU()"},
                                                      {Activation::relu, "ReLU()"},
                                                      {Activation::silu, "SiLU()"},
                                                      {Activation::tanh, "Tanh()"}};
  for (const auto& [activation, text] : texts) EXPECT_EQ(activation_text(activation), text);
}

TEST_F(Layers, MlpPrintsAndNamesItsPartsInOrder) {
  EXPECT_EQ(Mlp({.in_features = 2, .hidden_features = 3, .norm_eps = 0.5}, source()).to_string(),
            "Mlp(\n"
            "  (norm): LayerNorm((2,), eps=0.5, elementwise_affine=True)\n"
            "  (fc1): Linear(in_features=2, out_features=3, bias=True)\n"
            "  (act): GELU(approximate='none')\n"
            "  (drop1): Dropout(p=0.0, inplace=False)\n"
            "  (fc2): Linear(in_features=3, out_features=2, bias=True)\n"
            "  (drop2): Dropout(p=0.0, inplace=False)\n"
            ")");
  EXPECT_EQ(Mlp({.in_features = 2,
                 .hidden_features = 3,
                 .out_features = 5,
                 .activation = Activation::relu,
                 .dropout = 0.25,
                 .bias = false,
                 .hidden_norm_eps = 0.5,
                 .sam_names = true},
                source())
                .to_string(),
            "Mlp(\n"
            "  (lin1): Linear(in_features=2, out_features=3, bias=False)\n"
            "  (act): ReLU()\n"
            "  (drop1): Dropout(p=0.25, inplace=False)\n"
            "  (norm): LayerNorm((3,), eps=0.5, elementwise_affine=True)\n"
            "  (lin2): Linear(in_features=3, out_features=5, bias=False)\n"
            "  (drop2): Dropout(p=0.25, inplace=False)\n"
            ")");
  const Mlp defaults({.in_features = 3}, source());
  EXPECT_EQ(defaults.parameter("fc1.weight").shape(), (Shape{12, 3}));
  EXPECT_EQ(defaults.parameter("fc2.weight").shape(), (Shape{3, 12}));
}

TEST_F(Layers, MlpTracesAPlaceForTheNormThatItLacks) {
  const Tensor x = Tensor::randn({2, 3}, 1);
  const Mlp plain({.in_features = 3}, source("mlp")), normed({.in_features = 3, .hidden_norm_eps = 0.5}, source("mlp"));
  const Values without = traced_by([&] { plain.forward(x); }), with = traced_by([&] { normed.forward(x); });
  EXPECT_TRUE(testing::close(without.at("mlp.norm"), without.at("mlp.act"), 0));
  EXPECT_TRUE(testing::close(with.at("mlp.norm"), ops::layer_norm(with.at("mlp.act"), {}, {}, 0.5), 1e-6));
}

class SwiGluGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(SwiGluGolden, EqualsTheReference) {
  const LayerFixture fixture("swiglu_" + GetParam());
  const auto in = fixture.get<int64_t>("in_features");
  const SwiGluConfig config{
      .in_features = in,
      .hidden_features = fixture.optional<int64_t>("hidden_features").value_or(dinov2_swiglu_hidden(4 * in)),
      .bias = fixture.get<bool>("bias")};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const SwiGlu layer = build(fixture, dtype, [&](const ParamSource& params) { return SwiGlu(config, params); });
    EXPECT_TRUE(matches(layer.forward(fixture["input"].to(dtype)), fixture["output"]));
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, SwiGluGolden, ::testing::Values("default", "hidden", "no_bias"), name_of_case);

TEST(SwiGlu, HiddenWidthEqualsDinov2s) {
  EXPECT_EQ(dinov2_swiglu_hidden(4 * 1536), 4096);
  EXPECT_EQ(dinov2_swiglu_hidden(4 * 12), 32);
  EXPECT_EQ(dinov2_swiglu_hidden(4 * 13), 40);  // ⌊2/3 · 52⌋ = 34 → 40
}

TEST_F(Layers, SwiGluNormalisesItsHiddenFeatures) {
  const SwiGlu layer({.in_features = 4, .hidden_features = 3, .norm_eps = 0.5}, source("mlp"));
  EXPECT_EQ(names_of(layer), (Names{"fc1.weight", "fc1.bias", "norm.weight", "norm.bias", "fc2.weight", "fc2.bias"}));
  EXPECT_EQ(layer.parameter("fc1.weight").shape(), (Shape{6, 4}));
  EXPECT_EQ(layer.parameter("fc2.weight").shape(), (Shape{4, 3}));
  EXPECT_EQ(layer.type(), "SwiGLU");
  const Tensor gamma = layer.parameter("norm.weight"), beta = layer.parameter("norm.bias");
  gamma.copy_(Tensor::randn({3}, 2));
  beta.copy_(Tensor::randn({3}, 3));
  const Tensor x = Tensor::randn({2, 5, 4}, 1);
  const Tensor both = ops::linear(x, layer.parameter("fc1.weight"), layer.parameter("fc1.bias"));
  const Tensor gate = ops::activation(both.narrow(2, 0, 3).contiguous(), Activation::silu);
  const Tensor gated = ops::mul(gate, both.narrow(2, 3, 3)), hidden = ops::layer_norm(gated, gamma, beta, 0.5);
  const Tensor want = ops::linear(hidden, layer.parameter("fc2.weight"), layer.parameter("fc2.bias"));
  EXPECT_TRUE(testing::close(layer.forward(x), want, 1e-5));
  const Values values = traced_by([&] { layer.forward(x); });
  EXPECT_TRUE(testing::close(values.at("mlp.act"), gate, 1e-6));
  EXPECT_TRUE(testing::close(values.at("mlp.gated"), gated, 1e-6));
  EXPECT_TRUE(testing::close(values.at("mlp.drop1"), gated, 1e-6));
  EXPECT_TRUE(testing::close(values.at("mlp.norm"), hidden, 1e-5));
  EXPECT_TRUE(testing::close(values.at("mlp.drop2"), want, 1e-5));
  EXPECT_TRUE(testing::close(values.at("mlp"), want, 1e-5));
  const SwiGlu plain({.in_features = 4, .hidden_features = 3, .bias = false}, source("mlp"));
  EXPECT_EQ(names_of(plain), (Names{"fc1.weight", "fc2.weight"}));
  const Values without = traced_by([&] { plain.forward(x); });
  EXPECT_TRUE(testing::close(without.at("mlp.norm"), without.at("mlp.gated"), 0));
}

TEST(SwiGlu, TheWidthOfDinov2IsRoundedUpToEight) {
  const std::pair<int64_t, int64_t> widths[] = {{12, 8}, {13, 8}, {14, 16}, {24, 16}, {25, 16}, {26, 24}, {0, 0}};
  for (const auto& [nominal, hidden] : widths) EXPECT_EQ(dinov2_swiglu_hidden(nominal), hidden) << nominal;
}

}  // namespace
}  // namespace vitrail::nn
