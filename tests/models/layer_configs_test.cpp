// SPDX-License-Identifier: Apache-2.0
// Which fields of a configuration become which options of the layers.
#include "vitrail/models/layer_configs_internal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <tuple>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/models/derived_config_internal.h"

namespace vitrail::models {
namespace {

using Config = VisionTransformerConfig;
using Pair = std::array<int64_t, 2>;
using kernels::Activation;
using testing::error_of;

// Every field has a value of its own.
Config odd() {
  Config c;
  c.img_size = {24, 40};
  c.patch_size = {6, 8};
  c.in_chans = 5;
  c.embed_dim = 36;
  c.depth = 7;
  c.num_heads = 3;
  c.head_dim = 16;
  c.mlp_hidden = 50;
  c.qkv_bias = false;
  c.qk_scale = 0.75;
  c.qk_norm = true;
  c.attn_type = AttentionType::eva;
  c.proj_bias = false;
  c.norm_layer = nn::NormLayer::rms_norm;
  c.scale_attn_inner = true;
  c.scale_mlp = true;
  c.norm_first = false;
  c.norm_eps = 0.125;
  c.init_values = 0.5;
  c.act_layer = Activation::relu;
  c.attn_drop_rate = 0.01;
  c.proj_drop_rate = 0.02;
  c.drop_path_rate = 0.6;
  c.weight_init = "moco";
  return c;
}

TEST(LayerConfigs, OfThePatchEmbedding) {
  Config c = odd();
  c.dynamic_img_size = true;
  const nn::PatchEmbedConfig patch = patch_embed_config(c);
  EXPECT_EQ(patch.img_size, (Pair{24, 40}));
  EXPECT_EQ(patch.patch_size, (Pair{6, 8}));
  EXPECT_EQ(patch.in_chans, 5);
  EXPECT_EQ(patch.embed_dim, 36);
  EXPECT_TRUE(patch.bias);
  EXPECT_EQ(patch.norm_layer, nn::NormLayer::rms_norm);
  EXPECT_TRUE(patch.dynamic_img_size);
  EXPECT_FALSE(patch.allow_remainder);
  EXPECT_TRUE(patch.flatten);
  EXPECT_EQ(patch.init, nn::init::Scheme::moco);
  c.dynamic_img_size = false;
  c.allow_remainder = true;
  EXPECT_FALSE(patch_embed_config(c).dynamic_img_size);
  EXPECT_TRUE(patch_embed_config(c).allow_remainder);
  const auto bias = [&](bool pre_norm, std::optional<bool> given) {
    c.pre_norm = pre_norm;
    c.patch_bias = given;
    return patch_embed_config(c).bias;
  };
  EXPECT_TRUE(bias(false, {}));
  EXPECT_FALSE(bias(true, {}));
  EXPECT_TRUE(bias(true, true));
  EXPECT_FALSE(bias(false, false));
  const std::optional<double> none, eps = 0.125;
  for (const auto& [norm, before, after] :
       {std::tuple(PatchNorm::none, none, none), std::tuple(PatchNorm::pre, eps, none),
        std::tuple(PatchNorm::post, none, eps), std::tuple(PatchNorm::both, eps, eps)}) {
    c.patch_norm = norm;
    EXPECT_EQ(patch_embed_config(c).input_norm_eps, before);
    EXPECT_EQ(patch_embed_config(c).norm_eps, after);
  }
}

TEST(LayerConfigs, OfABlock) {
  Config c = odd();
  const nn::BlockConfig block = block_config(c, 2);
  EXPECT_EQ(block.attention.dim, 36);
  EXPECT_EQ(block.attention.num_heads, 3);
  EXPECT_EQ(block.attention.head_dim, 16);
  EXPECT_FALSE(block.attention.qkv_bias);
  EXPECT_FALSE(block.attention.k_bias);
  EXPECT_EQ(block.attention.qk_scale, 0.75);
  EXPECT_TRUE(block.attention.qk_norm);
  EXPECT_TRUE(block.attention.scale_norm);
  EXPECT_EQ(block.attention.norm_eps, 0.125);
  EXPECT_EQ(block.attention.norm_layer, nn::NormLayer::rms_norm);
  EXPECT_FALSE(block.attention.proj_bias);
  EXPECT_EQ(block.attention.attn_drop, 0.01);
  EXPECT_EQ(block.attention.proj_drop, 0.02);
  EXPECT_EQ(block.attention.rotary_pairs, ops::RotaryPairs::interleaved);
  EXPECT_EQ(block.attention.init, nn::init::Scheme::moco);
  EXPECT_FALSE(block.attention.split);
  EXPECT_FALSE(block.attention.rel_pos_grid);
  EXPECT_EQ(block.mlp_hidden, 50);
  EXPECT_EQ(block.activation, Activation::relu);
  EXPECT_FALSE(block.swiglu);
  EXPECT_TRUE(block.scale_mlp);
  EXPECT_EQ(block.norm_eps, 0.125);
  EXPECT_FALSE(block.norm_first);
  EXPECT_FALSE(block.res_post_norm);
  EXPECT_EQ(block.init_values, 0.5);
  EXPECT_EQ(block.mlp_drop, 0.02);
  EXPECT_DOUBLE_EQ(block.drop_path, 0.2);
  EXPECT_DOUBLE_EQ(block_config(c, 6).drop_path, 0.6);
  c.depth = 2;
  EXPECT_DOUBLE_EQ(block_config(c, 1).drop_path, 0.6);
  c.rope_rotate_half = true;
  EXPECT_EQ(block_config(c, 0).attention.rotary_pairs, ops::RotaryPairs::halves);
  c.attn_type = AttentionType::plain;
  EXPECT_TRUE(block_config(c, 0).attention.k_bias);
  c.use_post_norm = true;
  EXPECT_TRUE(block_config(c, 0).res_post_norm);
  EXPECT_FALSE(block_config(c, 0).init_values) << "the norms scale the branches";
  c.use_rel_pos_bias = true;
  c.rel_pos_interp = nn::RelativePositionResampling::bilinear;
  EXPECT_EQ(block_config(c, 0).attention.rel_pos_grid, (Pair{4, 5}));
  EXPECT_EQ(block_config(c, 0).attention.rel_pos_resampling, nn::RelativePositionResampling::bilinear);
  for (const MlpLayer layer : {MlpLayer::swiglu, MlpLayer::swiglu_packed}) {
    c.mlp_layer = layer;
    EXPECT_TRUE(block_config(c, 0).swiglu);
  }
  c.mlp_layer = MlpLayer::mlp;
  c.swiglu_mlp = true;
  EXPECT_TRUE(block_config(c, 0).swiglu);
}

TEST(LayerConfigs, OfAttentionPooling) {
  Config c = odd();
  const nn::AttentionPoolConfig plain = attention_pool_config(c);
  EXPECT_EQ(plain.dim, 36);
  EXPECT_EQ(plain.out_dim, 0);
  EXPECT_EQ(plain.num_heads, 3);
  EXPECT_EQ(plain.mlp_hidden, 50);
  EXPECT_EQ(plain.activation, Activation::relu);
  EXPECT_EQ(plain.norm_eps, 0.125);
  EXPECT_EQ(plain.norm_layer, nn::NormLayer::rms_norm);
  EXPECT_TRUE(plain.q_proj);
  EXPECT_TRUE(plain.qkv_bias);
  EXPECT_FALSE(plain.input_norms);
  EXPECT_EQ(plain.proj_drop, 0);
  EXPECT_EQ(plain.init, nn::init::Scheme::moco);
  c.attn_pool_dim = 20;
  c.attn_pool_num_heads = 5;
  c.attn_pool_mlp_ratio = 1.5;
  c.attn_pool_q_proj = false;
  c.attn_pool_input_norms = true;
  const nn::AttentionPoolConfig pool = attention_pool_config(c);
  EXPECT_EQ(pool.out_dim, 20);
  EXPECT_EQ(pool.num_heads, 5);
  EXPECT_EQ(pool.mlp_hidden, 54);
  EXPECT_FALSE(pool.q_proj);
  EXPECT_TRUE(pool.qkv_bias);
  EXPECT_TRUE(pool.input_norms);
  c.attn_pool_q_proj = true;
  c.attn_pool_qkv_bias = false;
  EXPECT_TRUE(attention_pool_config(c).q_proj);
  EXPECT_FALSE(attention_pool_config(c).qkv_bias);
}

TEST(LayerConfigs, OfRotaryPositions) {
  Config c = odd();
  c.rope_type = nn::RotaryType::mixed;
  c.rope_temperature = 77;
  c.rope_grid_offset = 0.5;
  c.ref_feat_shape = {{16, 12}};
  c.rope_periods = {1, 2};
  const nn::RotaryEmbeddingConfig rotary = rotary_config(c);
  EXPECT_EQ(rotary.head_dim, 16);
  EXPECT_EQ(rotary.num_heads, 3);
  EXPECT_EQ(rotary.depth, 7);
  EXPECT_EQ(rotary.type, nn::RotaryType::mixed);
  EXPECT_EQ(rotary.temperature, 77);
  EXPECT_EQ(rotary.offset, 0.5);
  EXPECT_FALSE(rotary.x_first);
  EXPECT_EQ(rotary.reference, (Pair{16, 12}));
  EXPECT_EQ(rotary.periods, (std::vector<double>{1, 2}));
  c.head_dim.reset();
  c.rope_grid_indexing = GridIndexing::xy;
  EXPECT_EQ(rotary_config(c).head_dim, 12);
  EXPECT_TRUE(rotary_config(c).x_first);
}

TEST(DerivedConfig, SchemesHaveTheirNames) {
  using nn::init::Scheme;
  Config c;
  for (const auto& [name, scheme] :
       {std::pair("", Scheme::timm), std::pair("jax", Scheme::jax), std::pair("jax_nlhb", Scheme::jax_nlhb),
        std::pair("moco", Scheme::moco), std::pair("xavier", Scheme::xavier), std::pair("torch", Scheme::torch)}) {
    c.weight_init = name;
    EXPECT_EQ(scheme_of(c), scheme) << name;
  }
  c.weight_init = "kaiming";
  EXPECT_ERROR(error_of([&] { scheme_of(c); }), "weight_init", "'kaiming'");
  EXPECT_EQ(head_activation({}), Activation::tanh);
  c.head_act = "relu";
  EXPECT_EQ(head_activation(c), Activation::relu);
}

double deviation_of(const Initializer& init) {
  Tensor x = Tensor::empty({10000}, DType::f64);
  init(x, 5);
  double square = 0;
  for (int64_t i = 0; i < x.numel(); ++i) square += x.data<double>()[i] * x.data<double>()[i];
  return std::sqrt(square / 10000);
}

TEST(DerivedConfig, TokensAndPositionsBeginAsInTheirLibrary) {
  Config c;
  for (const auto& [name, tokens, positions] :
       {std::tuple("", 1e-6, 0.02), std::tuple("jax", 1e-6, 0.02), std::tuple("moco", 1e-6, 0.02),
        std::tuple("xavier", 0.0, 0.02), std::tuple("torch", 1.0, 1.0)}) {
    c.weight_init = name;
    EXPECT_NEAR(deviation_of(token_init_of(c).tokens), tokens, 0.04 * tokens) << name;
    EXPECT_NEAR(deviation_of(token_init_of(c).positions), positions, 0.04 * positions) << name;
  }
}

TEST(DerivedConfig, WidthsOfPoolsAndGates) {
  Config c;
  c.embed_dim = 100;
  c.mlp_ratio = 3.999;
  EXPECT_EQ(pool_mlp_hidden_of(c), 399);
  c.attn_pool_mlp_ratio = 0;
  EXPECT_EQ(pool_mlp_hidden_of(c), 0);
  c.attn_pool_mlp_ratio = 1.259;
  EXPECT_EQ(pool_mlp_hidden_of(c), 125);
  EXPECT_FALSE(has_swiglu(c));
  c.swiglu_mlp = true;
  EXPECT_TRUE(has_swiglu(c));
  c.swiglu_align_to = 1;
  EXPECT_EQ(mlp_hidden_of(c), 399);
  c.swiglu_align_to = 8;
  EXPECT_EQ(mlp_hidden_of(c), 400);
  c.mlp_ratio = 4;
  EXPECT_EQ(mlp_hidden_of(c), 400);
  c.mlp_layer = MlpLayer::swiglu_packed;  // swiglu_mlp has precedence
  EXPECT_EQ(mlp_hidden_of(c), 400);
  c.swiglu_mlp = false;
  c.mlp_ratio = 3.01;
  EXPECT_EQ(mlp_hidden_of(c), 150);
}

struct Fault {
  const char* message;
  std::function<void(Config&)> change;
};

TEST(DerivedConfig, MessagesSayWhichCombinationIsWrong) {
  const std::vector<Fault> faults{
      {"img_size: …, got 0",
       [](Config& c) {
         c.img_size = {0, 224};
       }},
      {"patch_size: …, got 65537",
       [](Config& c) {
         c.patch_size = {16, 65537};
       }},
      {"mlp_ratio (the MLP's hidden width): …, got 0", [](Config& c) { c.mlp_ratio = 0; }},
      {"attn_pool_mlp_ratio: …, got -1",
       [](Config& c) { c.global_pool = GlobalPool::map, c.attn_pool_mlp_ratio = -1; }},
      {"attn_pool_mlp_ratio (the MLP's hidden width): …, got 76800000",
       [](Config& c) { c.global_pool = GlobalPool::map, c.attn_pool_mlp_ratio = 1e5; }},
      {"attn_pool_dim: …, got -1", [](Config& c) { c.global_pool = GlobalPool::map, c.attn_pool_dim = -1; }},
      {"pool_include_prefix: …, got another pooling",
       [](Config& c) { c.pool_include_prefix = true, c.attn_pool_dim = 8; }},
      {"attn_pool_dim: …, got another pooling", [](Config& c) { c.attn_pool_dim = 8; }},
      {"use_rel_pos_bias: …, got another combination",
       [](Config& c) { c.use_shared_rel_pos_bias = true, c.class_token = false, c.global_pool = GlobalPool::avg; }},
      {"use_rel_pos_bias: …, got another combination",
       [](Config& c) { c.use_rel_pos_bias = true, c.dist_token = true; }},
      {"patch_drop_rate: …, got 0.5", [](Config& c) { c.use_shared_rel_pos_bias = true, c.patch_drop_rate = 0.5; }},
      {"pos_embed: …, got positions of prefix tokens", [](Config& c) { c.pos_embed = PositionEmbedding::sincos2d; }},
      {"pos_embed: …, got positions of prefix tokens",
       [](Config& c) {
         c.pos_embed = PositionEmbedding::sincos2d, c.class_token = false, c.reg_tokens = 1;
         c.global_pool = GlobalPool::avg;
       }},
      {"norm_eps: …, got 1", [](Config& c) { c.norm_eps = 1; }},
      {"global_pool: …, got a pooling that reads the class token",
       [](Config& c) { c.class_token = false, c.global_pool = GlobalPool::token_avg; }},
      {"dist_token: …, got another combination",
       [](Config& c) { c.dist_token = true, c.global_pool = GlobalPool::avg; }},
      {"dist_token: …, got another combination",
       [](Config& c) { c.dist_token = true, c.class_token = false, c.global_pool = GlobalPool::avg; }},
      {"use_rot_pos_emb: …, got both", [](Config& c) { c.use_rot_pos_emb = true, c.qk_norm = true; }},
      {"rope_temperature: …, got -1", [](Config& c) { c.use_rot_pos_emb = true, c.rope_temperature = -1; }},
      {"rope_rotate_half: …, got true",
       [](Config& c) { c.use_rot_pos_emb = c.rope_rotate_half = true, c.rope_type = nn::RotaryType::mixed; }},
      {"ref_feat_shape: …, got 65537",
       [](Config& c) {
         c.use_rot_pos_emb = true;
         c.ref_feat_shape = {{65537, 4}};
       }},
      {"rope_periods: …, got -2",
       [](Config& c) {
         c.use_rot_pos_emb = true;
         c.rope_periods = {1, -2};
       }},
      {"weight_init: …, got 'x'", [](Config& c) { c.weight_init = "x"; }}};
  for (const Fault& fault : faults) {
    Config config;
    fault.change(config);
    EXPECT_ERROR_TEXT(error_of([&] { checked(config); }), fault.message);
  }
  Config wrong_activation;
  wrong_activation.head_act = "softplus";
  EXPECT_THROW(checked(wrong_activation), Error);
}

// What is next to the refused combinations.
TEST(DerivedConfig, CombinationsThatModelsHaveAreAccepted) {
  const std::vector<std::function<void(Config&)>> changes{
      [](Config& c) { c.use_rel_pos_bias = true; },
      [](Config& c) { c.patch_drop_rate = 0.5; },
      [](Config& c) { c.pos_embed = PositionEmbedding::sincos2d, c.no_embed_class = true; },
      [](Config& c) {
        c.pos_embed = PositionEmbedding::sincos2d, c.class_token = false, c.global_pool = GlobalPool::avg;
      },
      [](Config& c) { c.class_token = false, c.global_pool = GlobalPool::none; },
      [](Config& c) { c.class_token = false, c.global_pool = GlobalPool::map; },
      [](Config& c) { c.global_pool = GlobalPool::map, c.pool_include_prefix = true, c.attn_pool_dim = 1 << 20; },
      [](Config& c) { c.global_pool = GlobalPool::map, c.attn_pool_mlp_ratio = 0; },
      [](Config& c) { c.dist_token = true; },
      [](Config& c) { c.qk_norm = true, c.rope_temperature = 0, c.rope_periods = {0}; },
      [](Config& c) { c.use_rot_pos_emb = c.rope_rotate_half = true; },
      [](Config& c) {
        c.use_rot_pos_emb = true, c.rope_type = nn::RotaryType::mixed;
        c.ref_feat_shape = {{1, 65536}};
      },
      [](Config& c) { c.use_rot_pos_emb = true, c.reg_tokens = 4; }};
  for (size_t i = 0; i < changes.size(); ++i) {
    Config config;
    changes[i](config);
    EXPECT_NO_THROW(checked(config)) << i;
  }
}

}  // namespace
}  // namespace vitrail::models
