// SPDX-License-Identifier: Apache-2.0
// Options, names, messages and limits of the layers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/random.h"
#include "vitrail/nn/attention_pool.h"
#include "vitrail/nn/convolution.h"
#include "vitrail/nn/copied_params.h"
#include "vitrail/nn/downsampled_attention.h"
#include "vitrail/nn/dropout.h"
#include "vitrail/nn/init.h"
#include "vitrail/nn/layer_norm.h"
#include "vitrail/nn/layer_scale.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/mimetic.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/nn/multihead_attention.h"
#include "vitrail/nn/patch_embed.h"
#include "vitrail/nn/patch_resampling.h"
#include "vitrail/nn/positional_encoding.h"
#include "vitrail/nn/relative_position_bias.h"
#include "vitrail/nn/rotary_embedding.h"
#include "vitrail/nn/swiglu.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/recorder.h"
#include "vitrail/ops/rms_norm.h"

namespace vitrail::nn {
namespace {

using kernels::Activation;
using testing::error_of;
using Names = std::vector<std::string>;
using Values = std::map<std::string, Tensor>;

Names names_of(const Module& module) {
  Names names;
  for (const NamedTensor& p : module.named_parameters()) names.push_back(p.name);
  return names;
}

template <class Run>
Values traced_by(const Run& run) {
  Values values;
  const TraceScope scope([&](const std::string& name, const Tensor& tensor) { values[name] = tensor; });
  run();
  return values;
}

class Layers : public ::testing::Test {
 protected:
  ParamSource source(const std::string& path = "") { return ParamSource(random_, path); }

 private:
  RandomParams random_{1};
};

TEST_F(Layers, LinearTakesAnotherBiasAndTracesWhatPrecedesTheActivation) {
  const Linear layer(3, 2, true, source("fc"));
  const Tensor x = Tensor::randn({4, 3}, 1), other = Tensor::from<float>({2}, {5, -7});
  const Tensor weight = layer.weight(), bias = layer.bias();
  EXPECT_EQ(layer.in_features(), 3);
  EXPECT_EQ(layer.out_features(), 2);
  EXPECT_TRUE(testing::close(layer.forward_with_bias(x, other), ops::linear(x, weight, other), 0));
  EXPECT_TRUE(testing::close(layer.forward_with_bias(x, {}), ops::linear(x, weight, bias), 0));
  Tensor out;
  const Values values = traced_by([&] { out = layer.forward(x, Activation::relu); });
  EXPECT_TRUE(testing::close(values.at("fc"), ops::linear(x, weight, bias), 0));
  EXPECT_TRUE(testing::close(out, ops::linear(x, weight, bias, Activation::relu), 0));
  EXPECT_TRUE(testing::close(layer.forward(x, Activation::relu), out, 0));
  EXPECT_TRUE(traced_by([&] { layer.forward_with_bias(x, other); }).contains("fc"));
  EXPECT_FALSE(Linear(3, 2, false, source()).bias().defined());
}

TEST_F(Layers, RmsNormHasAWeightAlone) {
  const LayerNorm rms(4, 0.5, source("norm"), NormLayer::rms_norm), plain(4, 0.5, source("norm"));
  EXPECT_EQ(names_of(rms), (Names{"weight"}));
  EXPECT_EQ(names_of(plain), (Names{"weight", "bias"}));
  EXPECT_EQ(rms.to_string(), "RmsNorm((4,), eps=0.5, elementwise_affine=True)");
  for (const LayerNorm* norm : {&rms, &plain})
    EXPECT_TRUE(testing::close(norm->parameter("weight"), Tensor::full({4}, 1), 0));
  EXPECT_TRUE(testing::close(plain.parameter("bias"), Tensor::zeros({4}), 0));
  const Tensor gamma = Tensor::randn({4}, 2), beta = Tensor::randn({4}, 3), x = Tensor::randn({2, 3, 4}, 1);
  rms.parameter("weight").copy_(gamma);
  plain.parameter("weight").copy_(gamma);
  plain.parameter("bias").copy_(beta);
  EXPECT_TRUE(testing::close(rms.forward(x), ops::rms_norm(x, gamma, 0.5), 0));
  EXPECT_TRUE(testing::close(plain.forward(x), ops::layer_norm(x, gamma, beta, 0.5), 0));
  EXPECT_TRUE(traced_by([&] { rms.forward(x); }).contains("norm"));
}

TEST_F(Layers, LayerNorm2dIsOverTheChannels) {
  const LayerNorm2d norm(3, source("norm"));
  EXPECT_EQ(norm.to_string(), "LayerNorm2d()");
  EXPECT_EQ(names_of(norm), (Names{"weight", "bias"}));
  const Tensor x = ops::mul(Tensor::randn({2, 3, 2, 4}, 1), Tensor::full({1}, 1e-3));  // where ε matters
  const Tensor want = ops::layer_norm(x.permute({0, 2, 3, 1}), {}, {}, 1e-6).permute({0, 3, 1, 2});
  EXPECT_TRUE(testing::close(norm.forward(x), want, 1e-5));
  EXPECT_EQ(error_of([&] {
              norm.forward(Tensor::zeros({2, 4, 3, 3}));
            }),
            "LayerNorm2d: expected a feature map [B, 3, H, W], got [2, 4, 3, 3]");
}

TEST_F(Layers, LayerScaleBeginsWithItsValue) {
  const LayerScale scale(3, 0.125, source());
  EXPECT_TRUE(testing::close(scale.gamma(), Tensor::full({3}, 0.125), 0));
  EXPECT_EQ(names_of(scale), (Names{"gamma"}));
  EXPECT_EQ(scale.type(), "LayerScale");
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

TEST(Module, FloatsAtTheLimitsOfNotation) {
  const std::pair<double, const char*> texts[] = {
      {1e-4, "0.0001"},      {0.00099, "0.00099"}, {9.9e-5, "9.9e-05"},
      {-9.9e-5, "-9.9e-05"}, {-1e16, "-1e+16"},    {9999999999999998.0, "9999999999999998.0"},
      {-2, "-2.0"},          {1e-12, "1e-12"},     {1e100, "1e+100"},
      {INFINITY, "inf"},     {-INFINITY, "-inf"}};
  for (const auto& [value, text] : texts) EXPECT_EQ(python_float(value), text);
}

TEST_F(Layers, ModulesNameAParameterThatTheyLack) {
  const Mlp layer({.in_features = 2, .hidden_features = 3}, source());
  EXPECT_EQ(error_of([&] { layer.parameter("fc3.bias"); }), "Mlp: expected the name of a parameter, got 'fc3.bias'");
  std::vector<std::string> modules;
  for (const auto& [name, module] : layer.named_modules()) modules.push_back(name + ":" + module->type());
  EXPECT_EQ(modules, (Names{":Mlp", "fc1:Linear", "drop1:Dropout", "fc2:Linear", "drop2:Dropout"}));
  EXPECT_EQ(layer.num_parameters(), 2 * 3 + 3 + 3 * 2 + 2);
}

TEST_F(Layers, ListsKeepTheirItemsInOrder) {
  ModuleList<Linear> list("layers");
  for (const int64_t out : {3, 5, 4}) list.emplace_back(2, out, false, source());
  std::vector<int64_t> widths;
  for (const Linear& layer : list) widths.push_back(layer.out_features());
  EXPECT_EQ(widths, (std::vector<int64_t>{3, 5, 4}));
  EXPECT_EQ(list[1].out_features(), 5);
  EXPECT_EQ(names_of(list), (Names{"0.weight", "1.weight", "2.weight"}));
  EXPECT_EQ(list.path(), "layers");
}

TEST(Dropout, IsActiveInTrainingWithAProbabilityAboveZero) {
  Dropout drop(0.25, "drop"), none(0, "drop");
  EXPECT_FALSE(drop.active());
  drop.train();
  none.train();
  EXPECT_TRUE(drop.active());
  EXPECT_FALSE(none.active());
  EXPECT_EQ(DropPath(0.25, "p").type(), "DropPath");
  EXPECT_EQ(DropPath(0, "p").type(), "Identity");
  EXPECT_EQ(DropPath(0.0625, "p").extra(), "drop_prob=0.062");
  EXPECT_EQ(DropPath(0, "p").extra(), "");
  EXPECT_EQ(error_of([] { Dropout(1, ""); }), "dropout: expected a dropout probability in [0, 1), got 1.0");
  EXPECT_EQ(error_of([] { DropPath(-0.5, "blocks.1.drop_path1"); }),
            "blocks.1.drop_path1: expected a dropout probability in [0, 1), got -0.5");
  DropPath path(0.5, "p");
  EXPECT_FALSE(path.keep(3).defined());
  path.train();
  EXPECT_EQ(path.keep(3).shape(), (Shape{3}));
}

TEST(Dropout, MasksAreThoseOfPathSeedStepAndPositions) {
  Dropout drop(0.5, "blocks.0.drop");
  DropPath path(0.5, "blocks.0.path");
  drop.train();
  path.train();
  const RandomScope scope(7, 9, {4, 2});
  EXPECT_EQ(RandomScope::current().seed, 7u);
  EXPECT_EQ(RandomScope::current().step, 9u);
  EXPECT_EQ(RandomScope::current().positions, (std::vector<int64_t>{4, 2}));
  const Tensor x = Tensor::randn({2, 30}, 1);
  const Tensor mask = ops::dropout_mask({2, 30}, 0.5, random_key("blocks.0.drop", 7, 9), {4, 2}, DType::f32);
  EXPECT_TRUE(testing::close(drop.forward(x), ops::mul(x, mask), 0));
  const Tensor keep = ops::dropout_mask({2}, 0.5, random_key("blocks.0.path", 7, 9), {4, 2}, DType::f64);
  EXPECT_TRUE(testing::close(path.keep(2), keep, 0));
  {
    const RandomScope inner(1, 2);
    EXPECT_TRUE(RandomScope::current().positions.empty());
  }
  EXPECT_EQ(RandomScope::current().step, 9u);
}

// Fisher–Yates from the last place, with one uniform draw each.
TEST(RandomOrders, FollowTheDrawsOfTheirPath) {
  for (const std::vector<int64_t>& positions : {std::vector<int64_t>{}, {5, 3}}) {
    const RandomScope scope(7, 9, positions);
    const auto orders = random_orders("patch_drop", 2, 6);
    ASSERT_EQ(orders.size(), 2u);
    for (size_t b = 0; b < 2; ++b) {
      RandomStream random(random_key("patch_drop", 7, 9), positions.empty() ? b : static_cast<uint64_t>(positions[b]));
      std::vector<int64_t> want(6);
      std::iota(want.begin(), want.end(), 0);
      for (size_t i = 5; i > 0; --i)
        std::swap(want[i], want[static_cast<size_t>(random.uniform() * static_cast<double>(i + 1))]);
      EXPECT_EQ(orders[b], want);
    }
  }
}

// The distribution of an initialiser: constants, or the largest magnitude and the mean square of many draws.
struct Spread {
  double largest = 0, deviation = 0;
};

Spread spread_of(const Initializer& init) {
  Tensor x = Tensor::empty({20000}, DType::f64);
  init(x, 3);
  Spread spread;
  for (int64_t i = 0; i < 20000; ++i) {
    spread.largest = std::max(spread.largest, std::abs(x.data<double>()[i]));
    spread.deviation += x.data<double>()[i] * x.data<double>()[i] / 20000;
  }
  spread.deviation = std::sqrt(spread.deviation);
  return spread;
}

TEST(Init, EverySchemeAndRoleHasItsDistributions) {
  using init::Role;
  using init::Scheme;
  constexpr int64_t kIn = 64, kOut = 192;
  const double torch = 1 / 8.0 / std::sqrt(3.0), xavier = std::sqrt(6.0 / 256) / std::sqrt(3.0);
  struct Case {
    Scheme scheme;
    Role role;
    double weight, bias;  // standard deviations
  };
  std::vector<Case> cases;
  for (const Role role : {Role::patch, Role::qkv, Role::attn_proj, Role::mlp, Role::head}) {
    const bool patch = role == Role::patch, mlp = role == Role::mlp, head = role == Role::head;
    cases.push_back({Scheme::torch, role, torch, torch});
    cases.push_back({Scheme::timm, role, patch ? torch : 0.02, patch ? torch : 0});
    cases.push_back({Scheme::jax, role, patch ? 1 / 8.0 : head ? 0 : xavier, mlp ? 1e-6 : 0});
    cases.push_back({Scheme::jax_nlhb, role,
                     patch  ? 1 / 8.0
                     : head ? 0
                            : xavier,
                     mlp    ? 1e-6
                     : head ? std::log(static_cast<double>(kOut))
                            : 0});
    cases.push_back({Scheme::moco, role,
                     patch               ? torch
                     : role == Role::qkv ? std::sqrt(6.0 / 128) / std::sqrt(3.0)
                                         : xavier,
                     patch ? torch : 0});
    cases.push_back({Scheme::xavier, role, patch ? torch : xavier, patch ? torch : mlp ? 1e-6 : 0});
  }
  for (const Case& one : cases) {
    const init::LinearInit init = init::linear(one.scheme, one.role, kIn, kOut);
    const double weight = spread_of(init.weight).deviation, bias = spread_of(init.bias).deviation;
    EXPECT_NEAR(weight, one.weight, 0.03 * one.weight) << int(one.scheme) << " " << int(one.role);
    EXPECT_NEAR(bias, one.bias, 0.03 * one.bias) << int(one.scheme) << " " << int(one.role);
  }
  EXPECT_LE(spread_of(init::truncated_normal(1.5)).largest, 2);
  EXPECT_GT(spread_of(init::truncated_normal(1.5)).largest, 1.9);
  EXPECT_GT(spread_of(init::normal(1.5)).largest, 4);
}

TEST_F(Layers, PoolsNameTheirPartsAndWhatDoesNotFit) {
  const AttentionPoolLatent pool({.dim = 6, .out_dim = 8, .num_heads = 2, .mlp_hidden = 5, .input_norms = true},
                                 source("attn_pool"));
  EXPECT_EQ(names_of(pool),
            (Names{"latent", "q_norm.weight", "q_norm.bias", "kv_norm.weight", "kv_norm.bias", "q.weight", "q.bias",
                   "kv.weight", "kv.bias", "proj.weight", "proj.bias", "norm.weight", "norm.bias", "mlp.fc1.weight",
                   "mlp.fc1.bias", "mlp.fc2.weight", "mlp.fc2.bias"}));
  EXPECT_EQ(pool.parameter("q_norm.weight").shape(), (Shape{8}));
  EXPECT_EQ(pool.parameter("kv_norm.weight").shape(), (Shape{6}));
  EXPECT_EQ(pool.parameter("kv.weight").shape(), (Shape{16, 6}));
  EXPECT_EQ(pool.parameter("mlp.fc1.weight").shape(), (Shape{5, 8}));
  EXPECT_EQ(pool.type(), "AttentionPoolLatent");
  EXPECT_EQ(error_of([&] {
              pool.forward(Tensor::zeros({2, 5, 8}));
            }),
            "attn_pool: expected x [B, N, 6], got [2, 5, 8]");
  EXPECT_EQ(error_of([&] { AttentionPoolLatent({.dim = 6, .num_heads = 4}, source()); }),
            "attention pool: expected a width that num_heads divides, got width 6 and 4 heads");
  const Values values = traced_by([&] { pool.forward(Tensor::randn({2, 5, 6}, 1)); });
  EXPECT_EQ(values.at("attn_pool.residual").shape(), (Shape{2, 1, 8}));
  EXPECT_EQ(values.at("attn_pool").shape(), (Shape{2, 8}));
  const AttentionPoolLatent rms({.dim = 6, .num_heads = 2, .norm_layer = NormLayer::rms_norm, .qkv_bias = false},
                                source());
  EXPECT_EQ(names_of(rms), (Names{"latent", "q.weight", "kv.weight", "proj.weight", "proj.bias", "norm.weight",
                                  "mlp.fc1.weight", "mlp.fc1.bias", "mlp.fc2.weight", "mlp.fc2.bias"}));
  EXPECT_EQ(rms.parameter("mlp.fc1.weight").shape(), (Shape{24, 6}));
  const AttentionPoolLatent wide({.dim = 2500, .num_heads = 1, .mlp_hidden = 0, .q_proj = false}, source());
  double square = 0;
  for (int64_t i = 0; i < 2500; ++i) {
    const double value = wide.parameter("latent").data<float>()[i];
    square += value * value;
  }
  EXPECT_NEAR(square, 1, 0.15) << "2500 values of variance 1 / 2500, whose squares sum to 1 ± 0.03";
}

TEST_F(Layers, PoolsDropTheirProjection) {
  AttentionPoolLatent pool({.dim = 6, .num_heads = 2, .mlp_hidden = 0, .proj_drop = 0.5}, source("pool"));
  const Tensor x = Tensor::randn({3, 4, 6}, 1), eval = pool.forward(x);
  pool.train();
  const RandomScope scope(3, 4);
  const Tensor mask = ops::dropout_mask({3, 1, 6}, 0.5, random_key("pool.proj_drop", 3, 4), {}, DType::f32);
  EXPECT_TRUE(testing::close(pool.forward(x), ops::mul(eval, mask.view({3, 6})), 1e-6));
}

TEST_F(Layers, TransposedConvolutionsActivateTheirResult) {
  const ConvTranspose2d layer({.in_chans = 3, .out_chans = 2, .kernel = 2}, source("up"));
  const Tensor x = Tensor::randn({1, 2, 3, 3}, 1), plain = layer.forward(x);
  const Tensor want = ops::activation(plain, Activation::relu);
  EXPECT_TRUE(testing::close(layer.forward(x, Activation::relu), want, 1e-6));
  Tensor out;
  const Values values = traced_by([&] { out = layer.forward(x, Activation::relu); });
  EXPECT_TRUE(testing::close(out, want, 1e-6));
  EXPECT_TRUE(testing::close(values.at("up"), plain, 1e-6)) << "before the activation";
  EXPECT_EQ(error_of([&] {
              layer.forward(Tensor::zeros({1, 2, 3, 2}));
            }),
            "up: expected a map [B, h, w, 3], got [1, 2, 3, 2]");
  const Conv2d conv({.in_chans = 3, .out_chans = 2}, source());
  EXPECT_EQ(error_of([&] {
              conv.forward(Tensor::zeros({2, 3, 3}));
            }),
            "Conv2d: expected a map [B, h, w, 3], got [2, 3, 3]");
  EXPECT_TRUE(traced_by([&] { Conv2d({.in_chans = 3, .out_chans = 2}, source("neck")).forward(x); }).contains("neck"));
}

TEST_F(Layers, CopiedParamsNameAShapeThatDiffers) {
  const Linear original(3, 2, false, source());
  CopiedParams copies(original);
  EXPECT_EQ(error_of([&] { Linear(4, 2, false, ParamSource(copies)); }), "weight: expected [2, 4], got [2, 3]");
}

// Whether a recorded pass projects both sides and attends then: for these tokens, absorbing does not pay.
bool attends(const std::function<void()>& pass) {
  const ops::Recorder recorder;
  pass();
  return std::ranges::any_of(recorder.operations(),
                             [](const ops::Operation& operation) { return operation.kind == ops::OpKind::attention; });
}

Tensor meta(const Shape& shape) { return Tensor::empty(shape, DType::f32, Device::meta); }

// For a width C that is not reduced, and H heads: n queries absorb while H·n·2C < 2·C² + 2·n·C for each sample.
TEST_F(Layers, FewTokensAbsorbProjectionsWhereThatIsCheaper) {
  const DownsampledAttention layer({.embedding_dim = 4, .num_heads = 2}, source());
  struct Case {
    Shape query, key;
    bool plain;
  };
  for (const Case& one : {Case{{1, 3, 4}, {1, 64, 4}, false},
                          {{1, 4, 4}, {1, 64, 4}, true},  // equal costs
                          {{1, 3, 4}, {1, 63, 4}, true},  // not many tokens
                          {{1, 64, 4}, {1, 3, 4}, false},
                          {{1, 64, 4}, {1, 4, 4}, true},
                          {{1, 63, 4}, {1, 3, 4}, true},
                          {{3, 1, 4}, {1, 64, 4}, false},
                          {{3, 2, 4}, {1, 64, 4}, true},
                          {{1, 64, 4}, {3, 2, 4}, false},
                          {{1, 64, 4}, {3, 3, 4}, true},
                          {{1, 2, 4}, {3, 64, 4}, true},  // each sample has its own many tokens
                          {{3, 64, 4}, {1, 2, 4}, true}}) {
    EXPECT_EQ(attends([&] { layer.forward(meta(one.query), meta(one.key), meta(one.key)); }), one.plain)
        << one.query << one.key;
  }
  // One side is projected already: H·n·(C/r + C) < C²/r + 2·n·C/r.
  const auto projected = [&](const Shape& q, const Shape& key) {
    return attends([&] { layer.forward_projected_query(meta(q), meta(key), meta(key)); });
  };
  EXPECT_FALSE(projected({1, 64, 4}, {1, 1, 4}));
  EXPECT_TRUE(projected({1, 64, 4}, {1, 2, 4}));
  EXPECT_TRUE(projected({1, 63, 4}, {1, 1, 4}));
  EXPECT_TRUE(projected({3, 64, 4}, {1, 1, 4}));
}

TEST_F(Layers, TrainingAndWeightsWithoutDataUseThePlainFormula) {
  DownsampledAttention layer({.embedding_dim = 4, .num_heads = 2}, source());
  const auto plain = [&] {
    return attends([&] { layer.forward(meta({1, 1, 4}), meta({1, 64, 4}), meta({1, 64, 4})); });
  };
  EXPECT_FALSE(plain());
  layer.requires_grad(true);
  EXPECT_TRUE(plain());
  layer.requires_grad(false);
  EXPECT_FALSE(plain());
  layer.to(Device::meta);
  EXPECT_TRUE(plain());
  EXPECT_EQ(names_of(layer), (Names{"q_proj.weight", "q_proj.bias", "k_proj.weight", "k_proj.bias", "v_proj.weight",
                                    "v_proj.bias", "out_proj.weight", "out_proj.bias"}));
  EXPECT_EQ(layer.type(), "DownsampledAttention");
  EXPECT_EQ(
      error_of([&] { DownsampledAttention({.embedding_dim = 24, .num_heads = 5, .downsample_rate = 2}, source()); }),
      "DownsampledAttention: expected an internal width (embedding_dim / downsample_rate) that num_heads divides, "
      "got embedding_dim 24, downsample_rate 2, 5 heads");
}

TEST_F(Layers, MultiheadAttentionNamesWhatDoesNotFit) {
  const MultiheadAttention layer({.embed_dim = 6, .num_heads = 3}, source());
  EXPECT_EQ(MultiheadAttentionConfig().dropout, 0.1);
  EXPECT_EQ(names_of(layer), (Names{"q_proj.weight", "q_proj.bias", "k_proj.weight", "k_proj.bias", "v_proj.weight",
                                    "v_proj.bias", "out_proj.weight", "out_proj.bias"}));
  EXPECT_EQ(layer.type(), "MultiheadAttention");
  const Tensor q = Tensor::zeros({2, 4, 6}), k = Tensor::zeros({2, 5, 6});
  const auto error = [&](const AttentionMasks& masks) { return error_of([&] { layer.forward(q, k, k, masks); }); };
  const auto boolean = [](const Shape& shape) { return Tensor::zeros(shape, DType::boolean); };
  EXPECT_EQ(error({.key_padding_mask = boolean({2, 4})}),
            "MultiheadAttention: expected key_padding_mask [2, 5], got [2, 4]");
  EXPECT_EQ(
      error({.key_padding_mask = Tensor::zeros({2, 5})}),
      "MultiheadAttention: expected an integer or boolean key_padding_mask (a floating one is attn_bias), got f32");
  EXPECT_EQ(error({.attn_mask = Tensor::zeros({4, 5})}),
            "MultiheadAttention: expected an integer or boolean attn_mask (a floating one is attn_bias), got f32");
  EXPECT_EQ(error({.attn_mask = boolean({5, 4})}),
            "MultiheadAttention: expected attn_mask [T, S], [B, 1, T, S] or [B, H, T, S] for scores [2, 3, 4, 5], "
            "got [5, 4]");
  EXPECT_EQ(error({.attn_bias = Tensor::zeros({5, 4})}),
            "MultiheadAttention: expected attn_bias [T, S], [B, 1, T, S] or [B, H, T, S] for scores [2, 3, 4, 5], "
            "got [5, 4]");
  EXPECT_EQ(error({.attn_bias = boolean({4, 5})}),
            "MultiheadAttention: expected a floating attn_bias (an integer or boolean mask is attn_mask), got bool");
  EXPECT_EQ(
      error_of([&] { layer.forward(q, k, q); }),
      "MultiheadAttention: expected query [B, T, 6], key and value [B, S, 6], got [2, 4, 6], [2, 5, 6], [2, 4, 6]");
  EXPECT_EQ(error_of([&] { MultiheadAttention({.embed_dim = 6, .num_heads = 4}, source()); }),
            "MultiheadAttention: expected an embed_dim that num_heads divides, got embed_dim 6 and 4 heads");
}

TEST_F(Layers, MultiheadAttentionDropsUnderItsName) {
  MultiheadAttention layer({.embed_dim = 6, .num_heads = 3, .dropout = 0.5, .bias = false}, source("cross"));
  EXPECT_EQ(names_of(layer), (Names{"q_proj.weight", "k_proj.weight", "v_proj.weight", "out_proj.weight"}));
  layer.train();
  const Tensor x = Tensor::randn({2, 4, 6}, 1);
  Tensor first;
  {
    const RandomScope scope(1, 2);
    first = layer.forward(x, x, x).out;
  }
  const RandomScope scope(1, 3);
  EXPECT_FALSE(testing::close(layer.forward(x, x, x).out, first, 1e-4));
}

TEST_F(Layers, PatchEmbeddingsNormaliseWithTheirKind) {
  const PatchEmbed layer({.img_size = {4, 6},
                          .patch_size = {2, 3},
                          .in_chans = 2,
                          .embed_dim = 5,
                          .norm_eps = 0.5,
                          .input_norm_eps = 0.25,
                          .norm_layer = NormLayer::rms_norm},
                         source("patch_embed"));
  EXPECT_EQ(names_of(layer), (Names{"input_norm.weight", "proj.weight", "proj.bias", "norm.weight"}));
  EXPECT_EQ(layer.parameter("input_norm.weight").shape(), (Shape{12}));
  EXPECT_EQ(layer.parameter("proj.weight").shape(), (Shape{5, 2, 2, 3}));
  EXPECT_EQ(layer.grid_of(4, 6), (std::array<int64_t, 2>{2, 2}));
  const Tensor image = Tensor::randn({1, 2, 4, 6}, 1);
  const Tensor out = layer.forward(image);
  // The first patch by hand: rows 0 and 1, columns 0 to 2, in (c, y, x) order.
  std::vector<float> pixels;
  for (int64_t c = 0; c < 2; ++c) {
    for (int64_t i = 0; i < 6; ++i) pixels.push_back(image.data<float>()[(c * 4 + i / 3) * 6 + i % 3]);
  }
  const Tensor normed = ops::rms_norm(Tensor::from<float>({1, 12}, pixels), {}, 0.25);
  const Tensor projected =
      ops::linear(normed, layer.parameter("proj.weight").view({5, 12}), layer.parameter("proj.bias"));
  EXPECT_TRUE(testing::close(out.narrow(1, 0, 1).view({1, 5}), ops::rms_norm(projected, {}, 0.5), 1e-5));
  EXPECT_EQ(error_of([&] {
              layer.forward(Tensor::zeros({1, 3, 4, 6}));
            }),
            "patch_embed: expected images [B, 2, H, W], got [1, 3, 4, 6]");
  EXPECT_EQ(error_of([&] {
              PatchEmbed({.patch_size = {0, 3}}, source());
            }),
            "patch_embed: expected a patch of at least 1×1, got 0×3");
  const PatchEmbed plain({.img_size = {4, 6}, .patch_size = {2, 3}, .embed_dim = 5}, source("patch_embed"));
  const Values values = traced_by([&] { plain.forward(Tensor::randn({1, 3, 4, 6}, 1)); });
  EXPECT_TRUE(testing::close(values.at("patch_embed.norm"), values.at("patch_embed.transposed"), 0));
  EXPECT_EQ(PatchEmbedConfig().img_size, (std::array<int64_t, 2>{224, 224}));
  EXPECT_EQ(PatchEmbedConfig().patch_size, (std::array<int64_t, 2>{16, 16}));
  EXPECT_EQ(PatchEmbedConfig().embed_dim, 768);
}

TEST_F(Layers, PatchEmbeddingsMayIgnoreARemainder) {
  const PatchEmbed layer(
      {.img_size = {5, 8}, .patch_size = {2, 3}, .embed_dim = 4, .dynamic_img_size = true, .allow_remainder = true},
      source());
  EXPECT_EQ(layer.grid_of(5, 8), (std::array<int64_t, 2>{2, 2}));
  EXPECT_EQ(layer.grid_of(2, 3), (std::array<int64_t, 2>{1, 1}));
  EXPECT_EQ(layer.grid_of(7, 3), (std::array<int64_t, 2>{3, 1}));
  EXPECT_EQ(error_of([&] { layer.grid_of(1, 3); }),
            "patch_embed: expected an image size that the patch size 2×3 divides, got 1×3");
  EXPECT_EQ(error_of([&] { layer.grid_of(2, 2); }),
            "patch_embed: expected an image size that the patch size 2×3 divides, got 2×2");
}

TEST(PositionalEncoding, HasADefaultLengthAndKeepsTheDtype) {
  PositionalEncoding layer(4, 0.5, 1000, "pos");
  EXPECT_EQ(PositionalEncoding(4).forward(Tensor::zeros({1, 1000, 4})).shape(), (Shape{1, 1000, 4}));
  EXPECT_EQ(error_of([] {
              PositionalEncoding(4).forward(Tensor::zeros({1, 1001, 4}));
            }),
            "PositionalEncoding: expected x [B, at most 1000, 4], got [1, 1001, 4]");
  for (const DType dtype : {DType::f64, DType::bf16}) {
    EXPECT_EQ(layer.forward(Tensor::zeros({1, 2, 4}, dtype)).dtype(), dtype);
  }
  const Values values = traced_by([&] { layer.forward(Tensor::zeros({2, 3, 4})); });
  EXPECT_TRUE(testing::close(values.at("pos.positions"), sinusoidal_positions(3, 4), 0));
  layer.train();
  const RandomScope scope(3, 4);
  const Tensor x = Tensor::randn({2, 3, 4}, 1);
  const Tensor mask = ops::dropout_mask({2, 3, 4}, 0.5, random_key("pos.dropout", 3, 4), {}, DType::f32);
  EXPECT_TRUE(testing::close(layer.forward(x), ops::mul(ops::add(x, sinusoidal_positions(3, 4)), mask), 0));
  EXPECT_EQ(error_of([] { sinusoidal_positions(3, 5); }), "sinusoidal positions: expected an even width, got 5");
  EXPECT_EQ(error_of([] {
              sincos_positions_2d({2, 2}, 6);
            }),
            "sincos2d positions: expected a width that 4 divides, got 6");
}

TEST(PositionResampling, ErrorsNameGrids) {
  EXPECT_EQ(error_of([] {
              resample_positions(Tensor::zeros({1, 17, 4}), 1, {3, 5}, {2, 2}, {});
            }),
            "positions: expected [1, 1 + 3×5, D], got [1, 17, 4]");
  EXPECT_EQ(error_of([] {
              resample_positions(Tensor::zeros({1, 16, 4}), 1, {3, 5}, {2, 0}, {});
            }),
            "positions: expected a grid of at least 1×1, got 2×0");
  EXPECT_TRUE(PositionResampling().antialias);
  EXPECT_FALSE(PositionResampling().bilinear);
  EXPECT_EQ(PositionResampling().offset, 0);
}

// A row of values [1, n, 1] resampled to another length, and a column.
void expect_resampled(const std::vector<double>& from, const PositionResampling& how, const std::vector<double>& want) {
  const auto n = static_cast<int64_t>(from.size()), m = static_cast<int64_t>(want.size());
  const Tensor line = Tensor::from<double>({1, n, 1}, from), expected = Tensor::from<double>({1, m, 1}, want);
  EXPECT_TRUE(testing::close(resample_positions(line, 0, {1, n}, {1, m}, how), expected, 1e-12));
  EXPECT_TRUE(testing::close(resample_positions(line, 0, {n, 1}, {m, 1}, how), expected, 1e-12));
}

TEST(PositionResampling, BilinearWeightsAreTriangles) {
  expect_resampled({1, 4}, {.antialias = false, .bilinear = true}, {1, 2.5, 4});
  expect_resampled({1, 4, 10}, {.antialias = false, .bilinear = true}, {1.75, 8.5});
  // Target 0 of 2 from 4: the centre is 1, the triangle 2 wide on each side.
  const double first = (0.75 * 1 + 0.75 * 4 + 0.25 * 10) / 1.75, second = (0.25 * 4 + 0.75 * 10 + 0.75 * 20) / 1.75;
  expect_resampled({1, 4, 10, 20}, {.antialias = true, .bilinear = true}, {first, second});
  expect_resampled({1, 4}, {.antialias = true, .bilinear = true}, {1, 2.5, 4});
  // An offset changes the scale of the positions: 4 / 2.5.
  const double scale = 4 / 2.5, at = 1.5 * scale - 0.5;
  expect_resampled({1, 4, 10, 20}, {.antialias = false, .bilinear = true, .offset = 0.5},
                   {1 + 3 * (0.5 * scale - 0.5), 4 + 6 * (at - 1)});
}

TEST(PositionResampling, BicubicWeightsAreOfTheCubicWithItsParameter) {
  const auto cubic = [](double x, double a) {
    x = std::abs(x);
    return x < 1   ? (a + 2) * x * x * x - (a + 3) * x * x + 1
           : x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a
                   : 0;
  };
  // Target 1 of 4 from 2 is at 0.25; taps outside have the value of the edge.
  const auto plain = [&](double at) {
    double sum = 0;
    for (int i = -2; i <= 3; ++i) sum += cubic(at - i, -0.75) * (i <= 0 ? 1 : 4);
    return sum;
  };
  expect_resampled({1, 4}, {.antialias = false}, {plain(-0.25), plain(0.25), plain(0.75), plain(1.25)});
  // With antialiasing only taps inside count, and their weights are divided by their sum.
  const auto smooth = [&](double at) {
    const double low = cubic(at, -0.5), high = cubic(at - 1, -0.5);
    return (low * 1 + high * 4) / (low + high);
  };
  expect_resampled({1, 4}, {.antialias = true}, {smooth(-0.25), smooth(0.25), smooth(0.75), smooth(1.25)});
}

// The matrix [to, from] that resamples a grid with one channel, by unit vectors.
std::vector<double> resize_matrix(std::array<int64_t, 2> from, std::array<int64_t, 2> to) {
  const int64_t old = from[0] * from[1], count = to[0] * to[1];
  std::vector<double> matrix(static_cast<size_t>(count * old));
  for (int64_t i = 0; i < old; ++i) {
    Tensor unit = Tensor::zeros({1, old, 1}, DType::f64);
    unit.data<double>()[i] = 1;
    const Tensor column = resample_positions(unit, 0, from, to, {}).contiguous();
    for (int64_t r = 0; r < count; ++r) matrix[static_cast<size_t>(r * old + i)] = column.data<double>()[r];
  }
  return matrix;
}

// w' minimises |Bᵀ w' − w|: B (Bᵀ w' − w) = 0.  For patches that grow Bᵀ w' = w.
TEST(PatchResampling, SolvesTheLeastSquaresProblemOfEachPlane) {
  for (const auto& [from, to] : {std::pair<std::array<int64_t, 2>, std::array<int64_t, 2>>{{2, 3}, {5, 4}},
                                 {{5, 4}, {3, 2}},
                                 {{3, 5}, {3, 2}},
                                 {{4, 2}, {3, 5}}}) {
    const std::vector<double> b = resize_matrix(from, to);
    const int64_t old = from[0] * from[1], count = to[0] * to[1];
    const Tensor weight = Tensor::randn({2, 3, from[0], from[1]}, 1, DType::f64);
    const Tensor got = resample_patch_weight(weight, to);
    ASSERT_EQ(got.shape(), (Shape{2, 3, to[0], to[1]}));
    ASSERT_EQ(got.dtype(), DType::f64);
    for (int64_t plane = 0; plane < 6; ++plane) {
      std::vector<double> residual(static_cast<size_t>(old));
      for (int64_t i = 0; i < old; ++i) {
        residual[static_cast<size_t>(i)] = -weight.data<double>()[plane * old + i];
        for (int64_t r = 0; r < count; ++r)
          residual[static_cast<size_t>(i)] +=
              b[static_cast<size_t>(r * old + i)] * got.data<double>()[plane * count + r];
      }
      for (int64_t r = 0; r < count; ++r) {
        double sum = 0;
        for (int64_t i = 0; i < old; ++i) sum += b[static_cast<size_t>(r * old + i)] * residual[static_cast<size_t>(i)];
        EXPECT_NEAR(sum, 0, 1e-9) << plane;
      }
      if (from[0] <= to[0] && from[1] <= to[1]) {
        for (const double value : residual) EXPECT_NEAR(value, 0, 1e-9);
      }
    }
  }
  EXPECT_EQ(resample_patch_weight(Tensor::zeros({1, 1, 2, 3}, DType::bf16), {4, 4}).dtype(), DType::bf16);
  EXPECT_EQ(error_of([] {
              resample_patch_weight(Tensor::zeros({3, 4, 4}), {2, 2});
            }),
            "patch embedding: expected a weight [D, C, h, w], got [3, 4, 4]");
  EXPECT_EQ(error_of([] {
              resample_patch_weight(Tensor::zeros({1, 1, 4, 4}), {2, 0});
            }),
            "patch embedding: expected patches of at least 1×1, got 2×0");
}

// A table of one head whose value is its index along y (or x): the bias shows where a distance is in the table.
std::vector<double> places_along(int axis, int64_t from, int64_t to, RelativePositionResampling resampling) {
  RandomParams params(1, DType::f64);
  const std::array<int64_t, 2> old = axis == 0 ? std::array<int64_t, 2>{from, 2} : std::array<int64_t, 2>{2, from};
  const std::array<int64_t, 2> grid = axis == 0 ? std::array<int64_t, 2>{to, 2} : std::array<int64_t, 2>{2, to};
  const RelativePositionBias layer({old, 1, resampling}, ParamSource(params));
  const Tensor table = layer.parameter("relative_position_bias_table");
  const int64_t across = 2 * old[1] - 1;
  for (int64_t i = 0; i < table.numel(); ++i)
    table.data<double>()[i] = static_cast<double>(axis == 0 ? i / across : i % across);
  const Tensor bias = layer.forward(grid);
  const int64_t tokens = 1 + grid[0] * grid[1], step = axis == 0 ? 2 : 1;
  std::vector<double> places;
  for (int64_t distance = 1 - to; distance < to; ++distance) {
    const int64_t query = distance > 0 ? distance : 0, key = query - distance;
    places.push_back(bias.data<double>()[(1 + query * step) * tokens + 1 + key * step]);
  }
  return places;
}

void expect_places(const std::vector<double>& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
}

// Positions 0, ±1, ±(1 + q), …: q of at most 1.5, at least 1.01, or the one whose outermost position fits.
TEST(RelativePositionBias, GeometricPositionsAreSpacedByTheirRatio) {
  for (const int axis : {0, 1}) {
    const auto places = [&](int64_t from, int64_t to) {
      return places_along(axis, from, to, RelativePositionResampling::geometric);
    };
    // 5 positions 0, ±1, ±2.5 for distances up to 4; the outermost positions are cut.
    expect_places(places(3, 5), {0, 0, 1 / 3.0, 1, 2, 3, 4 - 1 / 3.0, 4, 4}, 1e-5);
    // 9 positions 0, ±1, ±2.01, … for distances up to 2.
    expect_places(places(5, 3), {2 + 0.01 / 1.01, 3, 4, 5, 6 - 0.01 / 1.01}, 1e-5);
    // 1 + q + q² = 4
    const double q = (std::sqrt(13.0) - 1) / 2, part = (4 - 3) / (q * q), next = (2 - 1) / q;
    expect_places(places(4, 5), {0, part, 2 - next, 2, 3, 4, 4 + next, 6 - part, 6}, 1e-4);
    expect_places(places(4, 4), {0, 1, 2, 3, 4, 5, 6}, 0);
  }
}

TEST(RelativePositionBias, BilinearPlacesAreHalfPixelCentres) {
  for (const int axis : {0, 1}) {
    const double step = 5.0 / 9;
    std::vector<double> want;
    for (int i = 0; i < 9; ++i) want.push_back(std::clamp((i + 0.5) * step - 0.5, 0.0, 4.0));
    expect_places(places_along(axis, 3, 5, RelativePositionResampling::bilinear), want, 1e-12);
  }
  EXPECT_EQ(RelativePositionBiasConfig().resampling, RelativePositionResampling::geometric);
}

// cos and sin of one band of y and one of x.
void expect_angle(const RotaryEmbedding& layer, std::array<int64_t, 2> grid, int64_t patch, double first,
                  double second) {
  const Tensor table = layer.tables(grid, DType::f64)[0];
  const double* const row = table.data<double>() + patch * 4;
  EXPECT_NEAR(row[0], std::cos(first), 1e-12);
  EXPECT_NEAR(row[1], std::cos(second), 1e-12);
  EXPECT_NEAR(row[2], std::sin(first), 1e-12);
  EXPECT_NEAR(row[3], std::sin(second), 1e-12);
}

TEST(RotaryEmbedding, CoordinatesHaveTheirOffsetAndOrder) {
  RandomParams params(1, DType::f64);
  const ParamSource source(params);
  const auto layer = [&](const RotaryEmbeddingConfig& config) { return RotaryEmbedding(config, source); };
  // Patch 5 of a grid of 2 × 4 is at y = 1, x = 1, patch 7 at y = 1, x = 3.
  expect_angle(layer({.head_dim = 4, .offset = 0.25}), {2, 4}, 7, 1.25, 3.25);
  expect_angle(layer({.head_dim = 4, .offset = 0.25, .x_first = true}), {2, 4}, 7, 3.25, 1.25);
  expect_angle(layer({.head_dim = 4, .offset = 0.25, .x_first = true, .reference = {{6, 8}}}), {2, 4}, 7, 3.25 * 8 / 4,
               1.25 * 6 / 2);
  const double tau = 2 * std::numbers::pi;
  expect_angle(layer({.head_dim = 4, .type = RotaryType::dinov3, .offset = 0.25}), {2, 4}, 7, tau * (2 * 1.75 / 2 - 1),
               tau * (2 * 3.75 / 4 - 1));
  expect_angle(layer({.head_dim = 4, .type = RotaryType::dinov3, .x_first = true}), {2, 4}, 5, tau * (2 * 1.5 / 4 - 1),
               tau * (2 * 1.5 / 2 - 1));
  EXPECT_EQ(RotaryEmbeddingConfig().temperature, 10000);
  const RotaryEmbeddingConfig mixed{.head_dim = 4, .num_heads = 1, .depth = 1, .type = RotaryType::mixed};
  RotaryEmbeddingConfig shifted = mixed;
  shifted.offset = 3;
  shifted.reference = {{9, 9}};
  EXPECT_TRUE(
      testing::close(layer(shifted).tables({2, 3}, DType::f64)[0], layer(mixed).tables({2, 3}, DType::f64)[0], 0));
  EXPECT_TRUE(names_of(layer({.head_dim = 4})).empty());
  EXPECT_EQ(names_of(layer(mixed)), (Names{"freqs"}));
  EXPECT_EQ(layer(mixed).type(), "RotaryEmbedding");
}

TEST(RotaryEmbedding, ErrorsNameTheLayer) {
  RandomParams params(1);
  EXPECT_EQ(error_of([&] { RotaryEmbedding({.head_dim = 6}, ParamSource(params)); }),
            "rotary embedding: expected a head_dim that 4 divides: two axes of pairs, got 6");
  EXPECT_EQ(error_of([&] {
              RotaryEmbedding({.head_dim = 8, .periods = {1, 2, 3}}, ParamSource(params, "rope"));
            }),
            "rope: expected 2 periods, got 3");
}

// aᵀ b of rows [k, n] and [k, n].
double product_at(const float* a, const float* b, int64_t k, int64_t n, int64_t r, int64_t c) {
  double sum = 0;
  for (int64_t i = 0; i < k; ++i) sum += static_cast<double>(a[i * n + r]) * b[i * n + c];
  return sum;
}

TEST(Mimetic, DefaultsAreThePapers) {
  EXPECT_EQ(MimeticOptions().qk_noise, 0.7);
  EXPECT_EQ(MimeticOptions().qk_identity, 0.7);
  EXPECT_EQ(MimeticOptions().vo_noise, 0.4);
  EXPECT_EQ(MimeticOptions().vo_identity, 0.4);
}

// Without noise the products are multiples of the identity, in their best approximation of the heads' rank.
TEST(Mimetic, WithoutNoiseProductsAreMultiplesOfTheIdentity) {
  constexpr int64_t n = 6;
  const MimeticOptions options{.qk_noise = 0, .qk_identity = 0.5, .vo_noise = 0, .vo_identity = 0.25};
  const Tensor qkv = Tensor::empty({3 * n, n}), proj = Tensor::empty({n, n});
  mimetic_attention(options, 1, 3, qkv, proj);
  const Tensor out = proj.transpose(0, 1).contiguous();
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < n; ++c) {
      const float* const values = qkv.data<float>();
      EXPECT_NEAR(product_at(values, values + n * n, n, n, r, c), r == c ? 0.5 : 0, 1e-6);
      EXPECT_NEAR(product_at(values + 2 * n * n, out.data<float>(), n, n, r, c), r == c ? -0.25 : 0, 1e-6);
    }
  }
}

// Heads narrower than the model: rows of v and columns of the projection are pairs of equal length.
TEST(Mimetic, NarrowModelsHaveTheirFactorsInPairs) {
  constexpr int64_t n = 10, heads = 2, width = 3, inner = heads * width;
  const Tensor qkv = Tensor::full({3 * inner, n}, 9), proj = Tensor::full({n, inner}, 9);
  mimetic_attention({}, heads, 3, qkv, proj);
  const auto norm = [](const Tensor& t) {
    double sum = 0;
    for (int64_t i = 0; i < t.numel(); ++i) sum += double{t.data<float>()[i]} * t.data<float>()[i];
    return sum;
  };
  const auto row = [&](int64_t i) { return norm(qkv.select(0, i).contiguous()); };
  for (int64_t k = 0; k < inner; ++k) {
    EXPECT_NEAR(row(2 * inner + k), norm(proj.select(1, k).contiguous()), 1e-4);
    EXPECT_NEAR(row(k), row(inner + k), 1e-4) << "a query and its key";
    if (k % width > 0) {
      EXPECT_GE(row(k - 1), row(k) - 1e-4);
    }
    if (k > 0) {
      EXPECT_GE(row(2 * inner + k - 1), row(2 * inner + k) - 1e-4);
    }
  }
}

TEST(Mimetic, ErrorsNameTheWeights) {
  const auto error = [](int64_t heads, const Shape& qkv, const Shape& proj) {
    return error_of([&] { mimetic_attention({}, heads, 0, Tensor::zeros(qkv), Tensor::zeros(proj)); });
  };
  const std::string weights = "mimetic initialisation: expected weights [3·H·d, C] and [C, H·d] of H = ";
  EXPECT_EQ(error(2, {24, 8}, {8, 7}), weights + "2 heads with H·d ≤ C, got [24, 8] and [8, 7]");
  EXPECT_EQ(error(0, {24, 8}, {8, 8}), weights + "0 heads with H·d ≤ C, got [24, 8] and [8, 8]");
  EXPECT_EQ(error(3, {24, 8}, {8, 8}), weights + "3 heads with H·d ≤ C, got [24, 8] and [8, 8]");
  EXPECT_EQ(error(2, {48, 8}, {8, 16}), weights + "2 heads with H·d ≤ C, got [48, 8] and [8, 16]");
}

TEST_F(Layers, TheRootOfATraceHasNoName) {
  const Mlp root({.in_features = 2, .hidden_features = 3}, source());
  const Values values = traced_by([&] { root.forward(Tensor::zeros({1, 2})); });
  Names names;
  for (const auto& [name, value] : values) names.push_back(name);
  EXPECT_EQ(names, (Names{"act", "drop1", "drop2", "fc1", "fc2", "norm"}));
  EXPECT_EQ(error_of([] {
              const TraceScope first([](const std::string&, const Tensor&) {});
              const TraceScope second([](const std::string&, const Tensor&) {});
            }),
            "trace: expected one trace at a time on a thread, got a second");
  EXPECT_FALSE(tracing());
}

}  // namespace
}  // namespace vitrail::nn
