// SPDX-License-Identifier: Apache-2.0
// The parts of a Vision Transformer: tokens, positions, pooling, heads and what is computed on the way.
#include "vitrail/models/vision_transformer.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/random.h"
#include "vitrail/models/flops.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/recorder.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::models {
namespace {

using VitConfig = VisionTransformerConfig;
using Names = std::vector<std::string>;
using Values = std::map<std::string, Tensor>;
using testing::close;
using testing::error_of;

VitConfig small_vit() {
  VitConfig config;
  config.img_size = {8, 12};
  config.patch_size = {4, 4};
  config.num_classes = 5;
  config.embed_dim = 8;
  config.depth = 3;
  config.num_heads = 2;
  config.mlp_ratio = 2;
  return config;
}

const Tensor& images() {
  static const Tensor x = Tensor::randn({2, 3, 8, 12}, 9, DType::f64);
  return x;
}

// All parameters are random, so that each can be seen.
VisionTransformer model_of(const VitConfig& config) {
  RandomParams params(1, DType::f64);
  VisionTransformer model(config, ParamSource(params));
  uint64_t seed = 0;
  for (const nn::NamedTensor& p : model.named_parameters()) p.tensor.copy_(Tensor::randn(p.tensor.shape(), ++seed));
  return model;
}

Values traced_by(const VisionTransformer& model) {
  Values values;
  const nn::TraceScope scope([&](const std::string& name, const Tensor& value) { values[name] = value; });
  model.forward(images());
  return values;
}

Tensor scaled(const Tensor& x, double factor) { return ops::mul(x, Tensor::full({1}, factor, x.dtype())); }

Tensor normed(const VisionTransformer& model, const std::string& name, const Tensor& x) {
  return ops::layer_norm(x.contiguous(), model.parameter(name + ".weight"), model.parameter(name + ".bias"), 1e-6);
}

Tensor linear_layer(const VisionTransformer& model, const std::string& name, const Tensor& x) {
  return ops::linear(x, model.parameter(name + ".weight"), model.parameter(name + ".bias"));
}

Names parameter_names(const VitConfig& config) {
  RandomParams meta(0, DType::f32, Device::meta);
  Names names;
  for (const nn::NamedTensor& p : VisionTransformer(config, ParamSource(meta)).named_parameters()) {
    if (!p.name.starts_with("blocks.") && !p.name.starts_with("patch_embed.")) names.push_back(p.name);
  }
  return names;
}

TEST(VisionTransformer, ParametersAreThoseOfItsOptions) {
  VitConfig config = small_vit();
  EXPECT_EQ(parameter_names(config),
            (Names{"cls_token", "pos_embed", "norm.weight", "norm.bias", "head.weight", "head.bias"}));
  config.reg_tokens = 2;
  config.dist_token = config.pre_norm = true;
  config.head_hidden = 7;
  EXPECT_EQ(parameter_names(config),
            (Names{"cls_token", "dist_token", "reg_token", "pos_embed", "norm_pre.weight", "norm_pre.bias",
                   "norm.weight", "norm.bias", "pre_logits.fc.weight", "pre_logits.fc.bias", "head.weight", "head.bias",
                   "head_dist.weight", "head_dist.bias"}));
  config = small_vit();
  config.global_pool = GlobalPool::avg;
  config.pos_embed = PositionEmbedding::none;
  config.projection_head = true;
  EXPECT_EQ(parameter_names(config), (Names{"cls_token", "fc_norm.weight", "fc_norm.bias", "head.weight"}));
  config.fc_norm = false;
  config.head_bias = true;
  EXPECT_EQ(parameter_names(config), (Names{"cls_token", "norm.weight", "norm.bias", "head.weight", "head.bias"}));
  config.final_norm = false;
  config.num_classes = 0;
  EXPECT_EQ(parameter_names(config), (Names{"cls_token"}));
  config = small_vit();
  config.use_shared_rel_pos_bias = true;
  config.fc_norm = true;
  EXPECT_EQ(parameter_names(config), (Names{"cls_token", "pos_embed", "rel_pos_bias.relative_position_bias_table",
                                            "fc_norm.weight", "fc_norm.bias", "head.weight", "head.bias"}));
  config = small_vit();
  config.use_rot_pos_emb = true;
  config.rope_type = nn::RotaryType::mixed;
  config.class_token = false;
  config.global_pool = GlobalPool::map;
  config.attn_pool_mlp_ratio = 0;
  config.fc_norm = true;
  config.attn_pool_dim = 4;
  EXPECT_EQ(parameter_names(config),
            (Names{"pos_embed", "rope.freqs", "attn_pool.latent", "attn_pool.q.weight", "attn_pool.q.bias",
                   "attn_pool.kv.weight", "attn_pool.kv.bias", "attn_pool.proj.weight", "attn_pool.proj.bias",
                   "fc_norm.weight", "fc_norm.bias", "head.weight", "head.bias"}));
  const VisionTransformer pooled = model_of(config);
  EXPECT_EQ(pooled.parameter("fc_norm.weight").shape(), (Shape{4}));
  EXPECT_EQ(pooled.parameter("head.weight").shape(), (Shape{5, 4}));
}

TEST(VisionTransformer, WidthsFollowThePooling) {
  VitConfig config = small_vit();
  config.global_pool = GlobalPool::token_avg;
  config.fc_norm = true;
  EXPECT_EQ(model_of(config).parameter("fc_norm.weight").shape(), (Shape{16}));
  EXPECT_EQ(model_of(config).parameter("head.weight").shape(), (Shape{5, 16}));
  config.head_hidden = 7;
  EXPECT_EQ(model_of(config).parameter("pre_logits.fc.weight").shape(), (Shape{7, 16}));
  EXPECT_EQ(model_of(config).parameter("head.weight").shape(), (Shape{5, 7}));
  config = small_vit();
  config.reg_tokens = 3;
  EXPECT_EQ(model_of(config).parameter("pos_embed").shape(), (Shape{1, 4 + 6, 8}));
  EXPECT_EQ(model_of(config).parameter("reg_token").shape(), (Shape{1, 3, 8}));
  config.no_embed_reg = true;
  EXPECT_EQ(model_of(config).parameter("pos_embed").shape(), (Shape{1, 1 + 6, 8}));
  config.no_embed_class = true;
  EXPECT_EQ(model_of(config).parameter("pos_embed").shape(), (Shape{1, 6, 8}));
}

// CLS, distillation, registers, patches; each with its own position.
TEST(VisionTransformer, TokensAreInTheirOrderWithTheirPositions) {
  for (const bool registers_have_positions : {true, false}) {
    VitConfig config = small_vit();
    config.dist_token = true;
    config.reg_tokens = 2;
    config.no_embed_reg = !registers_have_positions;
    const VisionTransformer model = model_of(config);
    EXPECT_EQ(model.num_prefix_tokens(), 4);
    EXPECT_EQ(model.num_head_tokens(), 2);
    const Values values = traced_by(model);
    const Tensor embedded = values.at("embedded"), patches = values.at("patch_embed");
    ASSERT_EQ(embedded.shape(), (Shape{2, 10, 8}));
    const Tensor positions = model.parameter("pos_embed");
    const auto position = [&](int64_t first, int64_t count) { return positions.narrow(1, first, count); };
    const int64_t behind = registers_have_positions ? 4 : 2;
    for (int64_t image = 0; image < 2; ++image) {
      const auto at = [&](int64_t first, int64_t count) {
        return embedded.narrow(0, image, 1).narrow(1, first, count);
      };
      EXPECT_TRUE(close(at(0, 1), ops::add(model.parameter("cls_token"), position(0, 1)), 1e-12));
      EXPECT_TRUE(close(at(1, 1), ops::add(model.parameter("dist_token"), position(1, 1)), 1e-12));
      const Tensor registers = model.parameter("reg_token");
      EXPECT_TRUE(close(at(2, 2), registers_have_positions ? ops::add(registers, position(2, 2)) : registers, 1e-12));
      EXPECT_TRUE(close(at(4, 6), ops::add(patches.narrow(0, image, 1), position(behind, 6)), 1e-12));
    }
  }
}

TEST(VisionTransformer, PositionsWithoutParametersAreTables) {
  VitConfig config = small_vit();
  config.pos_embed = PositionEmbedding::sinusoidal;
  Values values = traced_by(model_of(config));
  const Tensor table = nn::sinusoidal_positions(7, 8).to(DType::f64);
  EXPECT_TRUE(
      close(values.at("embedded").narrow(1, 1, 6), ops::add(values.at("patch_embed"), table.narrow(1, 1, 6)), 1e-12));
  config.pos_embed = PositionEmbedding::sincos2d;
  config.no_embed_class = true;
  values = traced_by(model_of(config));
  const Tensor grid = nn::sincos_positions_2d({2, 3}, 8).to(DType::f64);
  EXPECT_TRUE(close(values.at("embedded").narrow(1, 1, 6), ops::add(values.at("patch_embed"), grid), 1e-12));
  config.pos_embed = PositionEmbedding::none;
  config.no_embed_class = false;
  values = traced_by(model_of(config));
  EXPECT_TRUE(close(values.at("embedded").narrow(1, 1, 6), values.at("patch_embed"), 0));
}

TEST(VisionTransformer, AnotherImageSizeHasResampledPositions) {
  VitConfig config = small_vit();
  config.dynamic_img_size = true;
  config.pos_interp = {.antialias = false, .bilinear = true, .offset = 0.1};
  const VisionTransformer model = model_of(config);
  const Tensor larger = Tensor::randn({1, 3, 16, 8}, 3, DType::f64);
  Values values;
  {
    const nn::TraceScope scope([&](const std::string& name, const Tensor& value) { values[name] = value; });
    model.forward(larger);
  }
  const Tensor positions = nn::resample_positions(model.parameter("pos_embed"), 1, {2, 3}, {4, 2},
                                                  {.antialias = false, .bilinear = true, .offset = 0.1});
  EXPECT_TRUE(close(values.at("embedded").narrow(1, 1, 8),
                    ops::add(values.at("patch_embed"), positions.narrow(1, 1, 8)), 1e-12));
  EXPECT_EQ(model.grid_of(16, 8), (std::array<int64_t, 2>{4, 2}));
}

// Each pooling of the same tokens, in the order of the formulas.
TEST(VisionTransformer, PoolsAreOfTheirTokens) {
  VitConfig config = small_vit();
  config.reg_tokens = 2;
  const Tensor tokens = Tensor::randn({2, 9, 8}, 4, DType::f64);  // CLS, two registers, six patches
  const Tensor first = tokens.select(1, 0).contiguous(), mean = ops::mean(tokens.narrow(1, 3, 6), 1);
  const auto pooled = [&](GlobalPool pool) {
    config.global_pool = pool;
    config.fc_norm = false;
    return model_of(config).pool(tokens);
  };
  EXPECT_TRUE(close(pooled(GlobalPool::token), first, 0));
  EXPECT_TRUE(close(pooled(GlobalPool::avg), mean, 1e-14));
  EXPECT_TRUE(close(pooled(GlobalPool::token_avg), ops::cat({first, mean}, 1), 1e-14));
  EXPECT_TRUE(close(pooled(GlobalPool::none), tokens, 0));
  config.fc_norm = true;
  config.global_pool = GlobalPool::avg;
  const VisionTransformer normed_model = model_of(config);
  EXPECT_TRUE(close(normed_model.pool(tokens), normed(normed_model, "fc_norm", mean), 1e-12));
  config.fc_norm = false;
  config.global_pool = GlobalPool::map;
  const Tensor patches_alone = model_of(config).pool(tokens);
  config.pool_include_prefix = true;
  EXPECT_FALSE(close(model_of(config).pool(tokens), patches_alone, 1e-3));
  config.pool_include_prefix = false;
  Tensor other_prefix = tokens.clone();
  other_prefix.narrow(1, 0, 3).copy_(Tensor::full({1}, 7));
  EXPECT_TRUE(close(model_of(config).pool(other_prefix), patches_alone, 1e-12)) << "of patches";
}

// A merged token counts as often as the patches that it stands for.
TEST(VisionTransformer, MeansWeighTokensByTheirShares) {
  VitConfig config = small_vit();
  config.global_pool = GlobalPool::avg;
  config.fc_norm = false;
  const VisionTransformer model = model_of(config);
  const Tensor tokens = Tensor::randn({1, 4, 8}, 4, DType::f64),
               shares = Tensor::from<double>({1, 4}, {9, 0.5, 0.25, 0.25});
  Tensor want = Tensor::zeros({1, 8}, DType::f64);
  for (int64_t i = 1; i < 4; ++i) want = ops::add(want, scaled(tokens.select(1, i), shares.data<double>()[i]));
  EXPECT_TRUE(close(model.pool(tokens, shares), want, 1e-14));
  EXPECT_EQ(model.num_head_tokens(), 0);
}

TEST(VisionTransformer, HeadsReadTheirTokens) {
  VitConfig config = small_vit();
  config.dist_token = true;
  config.head_hidden = 6;
  config.head_act = "relu";
  const VisionTransformer model = model_of(config);
  const Tensor tokens = model.forward_features(images());
  const auto logits = [&](const char* head, int64_t token) {
    const Tensor hidden = ops::activation(linear_layer(model, "pre_logits.fc", tokens.select(1, token).contiguous()),
                                          kernels::Activation::relu);
    return linear_layer(model, head, hidden);
  };
  const Tensor classes = logits("head", 0), distilled = logits("head_dist", 1);
  const VisionTransformer::Heads heads = model.forward_heads(images());
  EXPECT_TRUE(close(heads.classes, classes, 1e-10));
  EXPECT_TRUE(close(heads.distilled, distilled, 1e-10));
  EXPECT_TRUE(close(heads.average(), scaled(ops::add(classes, distilled), 0.5), 1e-10));
  EXPECT_TRUE(close(model.forward(images()), heads.average(), 1e-12));
  EXPECT_TRUE(close(model.forward_head(tokens), heads.average(), 1e-10));
  config.dist_token = false;
  EXPECT_FALSE(model_of(config).forward_heads(images()).distilled.defined());
  EXPECT_EQ(model_of(config).num_head_tokens(), 1);
  config.num_classes = 0;
  const VisionTransformer headless = model_of(config);
  EXPECT_ERROR(error_of([&] { headless.forward_heads(images()); }), "forward_heads", "num_classes 0");
  const Tensor all = headless.forward_features(images());
  EXPECT_TRUE(close(headless.forward(images()),
                    ops::activation(linear_layer(headless, "pre_logits.fc", all.select(1, 0).contiguous()),
                                    kernels::Activation::relu),
                    1e-10));
}

TEST(VisionTransformer, IntermediateTokensAreThoseOfTheirBlocks) {
  const VisionTransformer model = model_of(small_vit());
  const Values values = traced_by(model);
  const auto block = [&](int64_t i) { return values.at(str("blocks.", i)); };
  for (const auto& [layer, index] : {std::pair<int64_t, int64_t>{0, 0}, {1, 1}, {2, 2}, {-1, 2}, {-3, 0}}) {
    EXPECT_TRUE(close(model.intermediate(images(), {.layer = layer, .final_norm = false}), block(index), 1e-10));
    EXPECT_TRUE(close(model.intermediate(images(), {.layer = layer}), normed(model, "norm", block(index)), 1e-9));
  }
  EXPECT_TRUE(close(model.intermediate(images(), {.layer = 1, .final_norm = false, .num_tokens = 2}),
                    block(1).narrow(1, 0, 2), 1e-10));
  EXPECT_TRUE(close(model.forward_features(images()), normed(model, "norm", block(2)), 1e-9));
  const std::vector<Tensor> several = model.intermediates(images(), {2, -3, 2}, false);
  ASSERT_EQ(several.size(), 3u);
  EXPECT_TRUE(close(several[0], block(2), 1e-10));
  EXPECT_TRUE(close(several[1], block(0), 1e-10));
  EXPECT_TRUE(close(several[2], block(2), 1e-10));
  EXPECT_TRUE(close(model.intermediates(images(), {1}, true)[0], normed(model, "norm", block(1)), 1e-9));
  for (const int64_t layer : {3, -4}) {
    const std::string message = str("layer: expected a block from 0 to 2 (or negative, from the end), got ", layer);
    EXPECT_EQ(error_of([&] { model.intermediate(images(), {.layer = layer}); }), message);
    EXPECT_EQ(error_of([&] { model.intermediates(images(), {0, layer}, true); }), message);
    EXPECT_EQ(error_of([&] { model.attention_maps(images(), layer); }), message);
  }
  EXPECT_ERROR(error_of([&] { model.intermediates(images(), {}, true); }), "layers", "none");
}

TEST(VisionTransformer, AttentionMapsAreTheWeightsOfTheirBlocks) {
  const VisionTransformer model = model_of(small_vit());
  const Values values = traced_by(model);
  const std::vector<Tensor> all = model.attention_maps(images());
  ASSERT_EQ(all.size(), 3u);
  for (int64_t i = 0; i < 3; ++i) {
    const Tensor want = values.at(str("blocks.", i, ".attn.weights"));
    ASSERT_EQ(all[static_cast<size_t>(i)].shape(), (Shape{2, 2, 7, 7}));
    EXPECT_TRUE(close(all[static_cast<size_t>(i)], want, 1e-10));
    for (const int64_t index : {i, i - 3}) {
      const std::vector<Tensor> one = model.attention_maps(images(), index);
      ASSERT_EQ(one.size(), 1u);
      EXPECT_TRUE(close(one[0], want, 1e-10)) << index;
    }
  }
}

TEST(VisionTransformer, WithoutBlocksIsItsEmbedding) {
  VitConfig config = small_vit();
  config.depth = 0;
  const VisionTransformer model = model_of(config);
  const Values values = traced_by(model);
  EXPECT_TRUE(close(model.forward_features(images()), normed(model, "norm", values.at("embedded")), 1e-12));
  EXPECT_TRUE(model.attention_maps(images()).empty());
}

TEST(VisionTransformer, TracesPlacesOfWhatItLacks) {
  VitConfig config = small_vit();
  const VisionTransformer model = model_of(config);
  const Values values = traced_by(model);
  EXPECT_TRUE(close(values.at("patch_drop"), values.at("embedded"), 0));
  EXPECT_TRUE(close(values.at("norm_pre"), values.at("embedded"), 0));
  EXPECT_TRUE(close(values.at("blocks"), values.at("blocks.2"), 0));
  EXPECT_TRUE(close(values.at("pooled"), values.at("norm").select(1, 0), 0));
  EXPECT_TRUE(close(values.at("fc_norm"), values.at("pooled"), 0));
  EXPECT_TRUE(close(values.at("head_drop"), values.at("pooled"), 0));
  EXPECT_TRUE(close(values.at("head"), values.at("logits"), 0));
  EXPECT_TRUE(close(values.at("logits"), model.forward(images()), 1e-9));
  config.num_classes = 0;
  config.final_norm = false;
  const Values without = traced_by(model_of(config));
  for (const char* name : {"head_drop", "head"}) EXPECT_TRUE(close(without.at(name), without.at("pooled"), 0)) << name;
  EXPECT_TRUE(close(without.at("norm"), without.at("blocks"), 0));
  EXPECT_FALSE(without.contains("logits"));
}

// The tokens that stay are those of the first places of the drawn orders, behind the prefix.
TEST(VisionTransformer, PatchDropoutKeepsTheFirstOfTheDrawnOrder) {
  VitConfig config = small_vit();
  config.reg_tokens = 1;
  config.patch_drop_rate = 0.4;  // 3.6 of the 6 patches: 3 stay
  VisionTransformer model = model_of(config);
  model.train();
  const nn::RandomScope scope(3, 5);
  const Values values = traced_by(model);
  const Tensor before = values.at("embedded"), after = values.at("patch_drop");
  ASSERT_EQ(after.shape(), (Shape{2, 2 + 3, 8}));
  const auto orders = nn::random_orders("patch_drop", 2, 6);
  for (int64_t image = 0; image < 2; ++image) {
    for (int64_t i = 0; i < 5; ++i) {
      const int64_t from = i < 2 ? i : 2 + orders[static_cast<size_t>(image)][static_cast<size_t>(i - 2)];
      EXPECT_TRUE(close(after.select(0, image).select(0, i), before.select(0, image).select(0, from), 0)) << i;
    }
  }
  model.drop_patches_in_training(0.99);
  EXPECT_EQ(traced_by(model).at("patch_drop").size(1), 2 + 1) << "at least one patch stays";
  model.drop_patches_in_training(0);
  EXPECT_EQ(traced_by(model).at("patch_drop").size(1), 8);
  EXPECT_EQ(model.config().patch_drop_rate, 0.4) << "the configuration is not changed";
  for (const double rate : {-0.5, 1.0}) EXPECT_THROW(model.drop_patches_in_training(rate), Error) << rate;
  model.drop_patches_in_training(0.5);
  model.eval();
  EXPECT_EQ(traced_by(model).at("patch_drop").size(1), 8);
}

TEST(VisionTransformer, EncodesAllPatchesAsTheWholeImage) {
  VitConfig config = small_vit();
  config.reg_tokens = 1;
  VisionTransformer model = model_of(config);
  const PatchIndices all(2, {0, 1, 2, 3, 4, 5});
  EXPECT_TRUE(close(model.encode(images(), all), model.forward_features(images()), 0));
  model.merge_tokens(1);
  EXPECT_EQ(model.encode(images(), all).shape(), (Shape{2, 2 + 6, 8})) << "no token is merged";
}

// Patch dropout keeps the patches of the drawn orders, here and with rotary tables.
TEST(VisionTransformer, EncodesChosenPatchesAsPatchDropoutThatKeepsThem) {
  for (const bool rotary : {false, true}) {
    VitConfig config = small_vit();
    config.reg_tokens = 1;
    config.use_rot_pos_emb = rotary;
    config.patch_drop_rate = 0.5;
    VisionTransformer model = model_of(config);
    model.train();
    const nn::RandomScope scope(3, 5);
    PatchIndices kept = nn::random_orders("patch_drop", 2, 6);
    for (auto& order : kept) order.resize(3);
    const Tensor dropped = model.forward_features(images());
    EXPECT_TRUE(close(model.encode(images(), kept), dropped, 0)) << rotary;
    model.eval();
    EXPECT_TRUE(close(model.encode(images(), kept), dropped, 0)) << rotary;
    std::swap(kept[0][0], kept[0][1]);
    EXPECT_FALSE(close(model.encode(images(), kept), dropped, 1e-3)) << "the order is that of the indices";
  }
}

TEST(VisionTransformer, EncodingReadsNoOtherPatches) {
  const VisionTransformer model = model_of(small_vit());
  const PatchIndices kept{{0, 4}, {5, 2}};
  const Tensor before = model.encode(images(), kept);
  const auto with_patch = [&](int64_t patch) {  // in the first image
    Tensor changed = images().clone();
    const int64_t y = patch / 3 * 4, x = patch % 3 * 4;
    changed.narrow(0, 0, 1).narrow(2, y, 4).narrow(3, x, 4).copy_(Tensor::randn({1, 3, 4, 4}, 1, DType::f64));
    return model.encode(changed, kept);
  };
  for (const int64_t patch : {1, 2, 3, 5}) EXPECT_TRUE(close(with_patch(patch), before, 0)) << patch;
  for (const int64_t patch : {0, 4}) {
    const Tensor after = with_patch(patch);
    EXPECT_FALSE(close(after.select(0, 0), before.select(0, 0), 1e-3)) << patch;
    EXPECT_TRUE(close(after.select(0, 1), before.select(0, 1), 0)) << patch;
  }
}

TEST(VisionTransformer, RefusesPatchesThatAreNotOfTheImages) {
  VitConfig config = small_vit();
  const VisionTransformer model = model_of(config);
  const auto problem = [&](const PatchIndices& kept) { return error_of([&] { model.encode(images(), kept); }); };
  EXPECT_EQ(problem({{0}}), "kept patches: expected those of 2 images, got those of 1");
  EXPECT_EQ(problem({{0, 1}, {0}}), "kept patches: expected the same number of each image, got 2 and 1");
  EXPECT_EQ(problem({{0}, {6}}), "kept patches: expected indices from 0 to 5, got 6");
  EXPECT_EQ(problem({{0}, {-1}}), "kept patches: expected indices from 0 to 5, got -1");
  config.use_rel_pos_bias = true;
  const VisionTransformer relative = model_of(config);
  EXPECT_EQ(error_of([&] {
              relative.encode(images(), {{0}, {1}});
            }),
            "encode: expected a model without a relative position bias, which is for all patches, got one");
}

TEST(VisionTransformer, RefusesPatchDropoutAndMergingWherePatchesHavePlaces) {
  VitConfig config = small_vit();
  const auto problem = [&](const std::function<void(VisionTransformer&)>& action) {
    VisionTransformer model = model_of(config);
    return error_of([&] { action(model); });
  };
  config.use_rel_pos_bias = true;
  const std::string drop =
      "patch dropout: expected a model without a relative position bias, which is for all patches, got one";
  const std::string bias =
      "token merging: expected a model without a relative position bias, which merged tokens do not have, got one";
  EXPECT_EQ(problem([](VisionTransformer& m) { m.drop_patches_in_training(0.5); }), drop);
  EXPECT_EQ(problem([](VisionTransformer& m) { m.merge_tokens(1); }), bias);
  config.use_rel_pos_bias = false;
  config.use_shared_rel_pos_bias = true;
  EXPECT_EQ(problem([](VisionTransformer& m) { m.drop_patches_in_training(0.5); }), drop);
  EXPECT_EQ(problem([](VisionTransformer& m) { m.merge_tokens(1); }), bias);
  VisionTransformer relative = model_of(config);
  EXPECT_NO_THROW(relative.drop_patches_in_training(0));
  EXPECT_NO_THROW(relative.merge_tokens(0));
  config = small_vit();
  config.use_rot_pos_emb = true;
  EXPECT_ERROR(problem([](VisionTransformer& m) { m.merge_tokens(1); }), "token merging", "use_rot_pos_emb");
  config = small_vit();
  config.global_pool = GlobalPool::map;
  EXPECT_ERROR(problem([](VisionTransformer& m) { m.merge_tokens(1); }), "token merging", "map");
  VisionTransformer plain = model_of(small_vit());
  plain.merge_tokens(2);
  EXPECT_EQ(plain.merged_per_block(), 2);
}

TEST(VisionTransformer, MergesInEvalAlone) {
  RandomParams params(1);
  VitConfig config = small_vit();
  config.global_pool = GlobalPool::avg;
  VisionTransformer model(config, ParamSource(params));
  const Tensor x = images().to(DType::f32);
  Tensor shares = Tensor::zeros({1});
  EXPECT_EQ(model.forward_features(x, &shares).shape(), (Shape{2, 7, 8}));
  EXPECT_FALSE(shares.defined());
  model.merge_tokens(1);
  EXPECT_EQ(model.forward_features(x, &shares).shape(), (Shape{2, 4, 8}));
  ASSERT_EQ(shares.shape(), (Shape{2, 4}));
  EXPECT_TRUE(close(model.forward(x), model.forward_head(model.forward_features(x, &shares), shares), 1e-6));
  model.train();
  EXPECT_EQ(model.forward_features(x, &shares).size(1), 7);
  EXPECT_FALSE(shares.defined());
}

// The bias that all blocks share is that of each block, in training and outside of it.
TEST(VisionTransformer, SharesARelativePositionBias) {
  VitConfig config = small_vit();
  config.use_shared_rel_pos_bias = true;
  VisionTransformer model = model_of(config);
  const Tensor eval = model.forward(images());
  model.train();
  EXPECT_TRUE(close(model.forward(images()), eval, 1e-9));
  model.parameter("rel_pos_bias.relative_position_bias_table").copy_(Tensor::zeros({3 * 5 + 3, 2}));
  EXPECT_FALSE(close(model.forward(images()), eval, 1e-3));
}

// A table of its own for each block, where the frequencies are learned.
TEST(VisionTransformer, RotatesEachBlockByItsOwnFrequencies) {
  VitConfig config = small_vit();
  config.use_rot_pos_emb = true;
  config.rope_type = nn::RotaryType::mixed;
  const VisionTransformer model = model_of(config);
  const std::vector<Tensor> before = model.intermediates(images(), {0, 1, 2}, false);
  const Tensor freqs = model.parameter("rope.freqs");  // [2, depth, heads, d/2]
  freqs.narrow(1, 1, 1).copy_(Tensor::zeros({1}));
  const std::vector<Tensor> after = model.intermediates(images(), {0, 1, 2}, false);
  EXPECT_TRUE(close(after[0], before[0], 0));
  EXPECT_FALSE(close(after[1], before[1], 1e-6));
}

TEST(VisionTransformer, TellsARecorderTheRolesOfItsTokens) {
  RandomParams params(1);
  VitConfig config = small_vit();
  config.dist_token = true;
  const VisionTransformer model(config, ParamSource(params));
  const ops::Recorder recorder;
  model.forward(Tensor::empty({1, 3, 8, 12}, DType::f32, Device::meta));
  ASSERT_EQ(recorder.token_roles().size(), 1u);
  EXPECT_TRUE(recorder.token_roles().begin()->second.class_token);
  EXPECT_EQ(recorder.token_roles().begin()->second.head_tokens, 2);
}

// Dropout of positions and in front of the head.
TEST(VisionTransformer, DropsPositionsAndFeaturesUnderTheirNames) {
  VitConfig config = small_vit();
  config.pos_drop_rate = 0.5;
  VisionTransformer model = model_of(config);
  const Tensor embedded = traced_by(model).at("embedded");
  model.train();
  const nn::RandomScope scope(3, 5);
  const Tensor mask = ops::dropout_mask({2, 7, 8}, 0.5, random_key("pos_drop", 3, 5), {}, DType::f64);
  EXPECT_TRUE(close(traced_by(model).at("embedded"), ops::mul(embedded, mask), 1e-12));
  config.pos_drop_rate = 0;
  config.drop_rate = 0.5;
  VisionTransformer head = model_of(config);
  const Tensor pooled = traced_by(head).at("pooled");
  head.train();
  const Tensor kept = ops::dropout_mask({2, 8}, 0.5, random_key("head_drop", 3, 5), {}, DType::f64);
  EXPECT_TRUE(close(head.forward(images()), linear_layer(head, "head", ops::mul(pooled, kept)), 1e-8));
}

// 2 per multiply-add of every token in every layer.
TEST(ForwardFlops, CountAllTokensInAllBlocks) {
  RandomParams params(1);
  VitConfig config = small_vit();
  const VisionTransformer model(config, ParamSource(params));
  const double tokens = 7, width = 8, hidden = 16, patches = 6, pixels = 3 * 4 * 4;
  const double block =
      2 * tokens * (width * 3 * width + width * width + 2 * width * hidden) + 4 * tokens * tokens * width;
  const double want = 2 * patches * pixels * width + 3 * block + 2 * width * 5;
  EXPECT_EQ(forward_flops(model, {1, 3, 8, 12}), want);
  EXPECT_EQ(forward_flops(model, {4, 3, 8, 12}), 4 * want);
  config.num_classes = 0;
  EXPECT_EQ(forward_flops(VisionTransformer(config, ParamSource(params)), {1, 3, 8, 12}), want - 2 * width * 5);
}

}  // namespace
}  // namespace vitrail::models
