// SPDX-License-Identifier: Apache-2.0
// model_args: every field is read into its member, and written again if it differs from the base.
#include "vitrail/models/model_args_internal.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/support/errors.h"
#include "tests/support/messages.h"

namespace vitrail::models {
namespace {

using Config = VisionTransformerConfig;
using kernels::Activation;
using testing::contains;
using testing::error_of;

Config read(const std::string& json, const std::vector<std::string>& others = {}) {
  const Json object = Json::parse(json);
  Config config;
  read_model_args(JsonFields(object, "args"), config, others);
  return config;
}

struct Field {
  const char *name, *value;  // in JSON
  std::function<bool(const Config&)> holds;
};

const std::vector<Field>& fields() {
  using Pair = std::array<int64_t, 2>;
  static const std::vector<Field> table{
      {"img_size", "[32, 48]",
       [](const Config& c) {
         return c.img_size == Pair{32, 48};
       }},
      {"patch_size", "[4, 8]",
       [](const Config& c) {
         return c.patch_size == Pair{4, 8};
       }},
      {"in_chans", "5", [](const Config& c) { return c.in_chans == 5; }},
      {"num_classes", "7", [](const Config& c) { return c.num_classes == 7; }},
      {"global_pool", "\"avg\"", [](const Config& c) { return c.global_pool == GlobalPool::avg; }},
      {"global_pool", "\"token_avg\"", [](const Config& c) { return c.global_pool == GlobalPool::token_avg; }},
      {"global_pool", "\"map\"", [](const Config& c) { return c.global_pool == GlobalPool::map; }},
      {"global_pool", "\"\"", [](const Config& c) { return c.global_pool == GlobalPool::none; }},
      {"pool_include_prefix", "true", [](const Config& c) { return c.pool_include_prefix; }},
      {"attn_pool_num_heads", "3", [](const Config& c) { return c.attn_pool_num_heads == 3; }},
      {"attn_pool_mlp_ratio", "1.5", [](const Config& c) { return c.attn_pool_mlp_ratio == 1.5; }},
      {"attn_pool_q_proj", "false", [](const Config& c) { return !c.attn_pool_q_proj; }},
      {"attn_pool_qkv_bias", "false", [](const Config& c) { return !c.attn_pool_qkv_bias; }},
      {"attn_pool_dim", "9", [](const Config& c) { return c.attn_pool_dim == 9; }},
      {"attn_pool_input_norms", "true", [](const Config& c) { return c.attn_pool_input_norms; }},
      {"embed_dim", "33", [](const Config& c) { return c.embed_dim == 33; }},
      {"depth", "11", [](const Config& c) { return c.depth == 11; }},
      {"num_heads", "13", [](const Config& c) { return c.num_heads == 13; }},
      {"head_dim", "17", [](const Config& c) { return c.head_dim == 17; }},
      {"mlp_ratio", "2.5", [](const Config& c) { return c.mlp_ratio == 2.5; }},
      {"mlp_hidden", "99", [](const Config& c) { return c.mlp_hidden == 99; }},
      {"qkv_bias", "false", [](const Config& c) { return !c.qkv_bias; }},
      {"qk_scale", "0.75", [](const Config& c) { return c.qk_scale == 0.75; }},
      {"qk_norm", "true", [](const Config& c) { return c.qk_norm; }},
      {"attn_type", "\"eva\"", [](const Config& c) { return c.attn_type == AttentionType::eva; }},
      {"proj_bias", "false", [](const Config& c) { return !c.proj_bias; }},
      {"norm_layer", "\"rmsnorm\"", [](const Config& c) { return c.norm_layer == nn::NormLayer::rms_norm; }},
      {"scale_attn_inner", "true", [](const Config& c) { return c.scale_attn_inner; }},
      {"norm_first", "false", [](const Config& c) { return !c.norm_first; }},
      {"use_post_norm", "true", [](const Config& c) { return c.use_post_norm; }},
      {"norm_eps", "0.125", [](const Config& c) { return c.norm_eps == 0.125; }},
      {"pre_norm", "true", [](const Config& c) { return c.pre_norm; }},
      {"patch_bias", "false", [](const Config& c) { return c.patch_bias == false; }},
      {"final_norm", "false", [](const Config& c) { return !c.final_norm; }},
      {"fc_norm", "true", [](const Config& c) { return c.fc_norm == true; }},
      {"init_values", "0.0625", [](const Config& c) { return c.init_values == 0.0625; }},
      {"class_token", "false", [](const Config& c) { return !c.class_token; }},
      {"reg_tokens", "6", [](const Config& c) { return c.reg_tokens == 6; }},
      {"dist_token", "true", [](const Config& c) { return c.dist_token; }},
      {"pos_embed", "\"sinusoidal\"", [](const Config& c) { return c.pos_embed == PositionEmbedding::sinusoidal; }},
      {"pos_embed", "\"sincos2d\"", [](const Config& c) { return c.pos_embed == PositionEmbedding::sincos2d; }},
      {"pos_embed", "\"none\"", [](const Config& c) { return c.pos_embed == PositionEmbedding::none; }},
      {"pos_interp", R"({"antialias": false, "offset": 0.25})",
       [](const Config& c) {
         return !c.pos_interp.antialias && c.pos_interp.offset == 0.25 && !c.pos_interp.bilinear;
       }},
      {"pos_interp", R"({"antialias": true, "offset": 0.0, "bilinear": true})",
       [](const Config& c) { return c.pos_interp.antialias && c.pos_interp.offset == 0 && c.pos_interp.bilinear; }},
      {"pos_interp", R"({"antialias": false, "offset": 0.0, "bilinear": true, "align_corners": true})",
       [](const Config& c) { return c.pos_interp.align_corners; }},
      {"no_embed_class", "true", [](const Config& c) { return c.no_embed_class; }},
      {"no_embed_reg", "true", [](const Config& c) { return c.no_embed_reg; }},
      {"use_rel_pos_bias", "true", [](const Config& c) { return c.use_rel_pos_bias; }},
      {"use_shared_rel_pos_bias", "true", [](const Config& c) { return c.use_shared_rel_pos_bias; }},
      {"rel_pos_interp", "\"bilinear\"",
       [](const Config& c) { return c.rel_pos_interp == nn::RelativePositionResampling::bilinear; }},
      {"use_rot_pos_emb", "true", [](const Config& c) { return c.use_rot_pos_emb; }},
      {"rope_type", "\"dinov3\"", [](const Config& c) { return c.rope_type == nn::RotaryType::dinov3; }},
      {"rope_type", "\"mixed\"", [](const Config& c) { return c.rope_type == nn::RotaryType::mixed; }},
      {"rope_temperature", "77.0", [](const Config& c) { return c.rope_temperature == 77; }},
      {"rope_grid_offset", "0.5", [](const Config& c) { return c.rope_grid_offset == 0.5; }},
      {"rope_grid_indexing", "\"xy\"", [](const Config& c) { return c.rope_grid_indexing == GridIndexing::xy; }},
      {"rope_rotate_half", "true", [](const Config& c) { return c.rope_rotate_half; }},
      {"ref_feat_shape", "[16, 12]",
       [](const Config& c) {
         return c.ref_feat_shape == Pair{16, 12};
       }},
      {"rope_periods", "[1.0, 2.5]",
       [](const Config& c) {
         return c.rope_periods == std::vector<double>{1, 2.5};
       }},
      {"dynamic_img_size", "true", [](const Config& c) { return c.dynamic_img_size; }},
      {"allow_remainder", "true", [](const Config& c) { return c.allow_remainder; }},
      {"patch_norm", "\"pre\"", [](const Config& c) { return c.patch_norm == PatchNorm::pre; }},
      {"patch_norm", "\"post\"", [](const Config& c) { return c.patch_norm == PatchNorm::post; }},
      {"patch_norm", "\"both\"", [](const Config& c) { return c.patch_norm == PatchNorm::both; }},
      {"act_layer", "\"gelu_tanh\"", [](const Config& c) { return c.act_layer == Activation::gelu_tanh; }},
      {"act_layer", "\"quick_gelu\"", [](const Config& c) { return c.act_layer == Activation::quick_gelu; }},
      {"act_layer", "\"relu\"", [](const Config& c) { return c.act_layer == Activation::relu; }},
      {"act_layer", "\"silu\"", [](const Config& c) { return c.act_layer == Activation::silu; }},
      {"mlp_layer", "\"swiglu\"", [](const Config& c) { return c.mlp_layer == MlpLayer::swiglu; }},
      {"mlp_layer", "\"swiglu_packed\"", [](const Config& c) { return c.mlp_layer == MlpLayer::swiglu_packed; }},
      {"swiglu_mlp", "true", [](const Config& c) { return c.swiglu_mlp; }},
      {"swiglu_align_to", "64", [](const Config& c) { return c.swiglu_align_to == 64; }},
      {"scale_mlp", "true", [](const Config& c) { return c.scale_mlp; }},
      {"head_hidden", "21", [](const Config& c) { return c.head_hidden == 21; }},
      {"head_act", "\"relu\"", [](const Config& c) { return c.head_act == "relu"; }},
      {"projection_head", "true", [](const Config& c) { return c.projection_head; }},
      {"head_bias", "false", [](const Config& c) { return c.head_bias == false; }},
      {"drop_rate", "0.01", [](const Config& c) { return c.drop_rate == 0.01; }},
      {"pos_drop_rate", "0.02", [](const Config& c) { return c.pos_drop_rate == 0.02; }},
      {"patch_drop_rate", "0.03", [](const Config& c) { return c.patch_drop_rate == 0.03; }},
      {"attn_drop_rate", "0.04", [](const Config& c) { return c.attn_drop_rate == 0.04; }},
      {"proj_drop_rate", "0.05", [](const Config& c) { return c.proj_drop_rate == 0.05; }},
      {"drop_path_rate", "0.06", [](const Config& c) { return c.drop_path_rate == 0.06; }},
      {"weight_init", "\"moco\"", [](const Config& c) { return c.weight_init == "moco"; }}};
  return table;
}

std::string object_of(const Field& field) { return str("{\"", field.name, "\": ", field.value, "}"); }

TEST(ModelArgs, EveryFieldIsReadIntoItsMemberAndWrittenAgain) {
  for (const Field& field : fields()) {
    const std::string json = object_of(field);
    EXPECT_FALSE(field.holds(Config())) << json << " is the default";
    const Config config = read(json);
    EXPECT_TRUE(field.holds(config)) << json;
    EXPECT_EQ(write_model_args(config).dump(), Json::parse(json).dump());
    EXPECT_EQ(write_model_args(config, config).dump(), "{}");
    EXPECT_TRUE(field.holds(read(write_model_args(config).dump()))) << json;
  }
  EXPECT_EQ(write_model_args(Config()).dump(), "{}");
}

// An absent field, and one that is null, leaves what was there.
TEST(ModelArgs, NullLeavesAFieldAsItIs) {
  for (const Field& field : fields()) {
    Config config = read(object_of(field));
    const Json null = Json::parse(str("{\"", field.name, "\": null}"));
    read_model_args(JsonFields(null, "args"), config);
    EXPECT_TRUE(field.holds(config)) << field.name;
  }
}

// What the base has and the configuration does not.
TEST(ModelArgs, ADifferenceFromTheBaseMayBeADefault) {
  EXPECT_EQ(write_model_args({}, read(R"({"depth": 3, "qk_norm": true, "img_size": 64, "fc_norm": false})")).dump(),
            R"({"img_size":224,"depth":12,"qk_norm":false,"fc_norm":null})");
  EXPECT_EQ(write_model_args(read(R"({"img_size": 32, "patch_size": [4, 4]})")).dump(),
            R"({"img_size":32,"patch_size":4})");
}

TEST(ModelArgs, DefaultsHaveTheirNames) {
  const Config base = read(R"({"global_pool": "avg", "attn_type": "eva", "norm_layer": "rmsnorm", "pos_embed": "none",
      "rel_pos_interp": "bilinear", "rope_type": "mixed", "rope_grid_indexing": "xy", "patch_norm": "pre",
      "act_layer": "relu", "mlp_layer": "swiglu"})");
  const std::string names = R"({"global_pool":"token","attn_type":"","norm_layer":"layernorm","pos_embed":"learn",)"
                            R"("rel_pos_interp":"geometric","rope_type":"cat","rope_grid_indexing":"ij",)"
                            R"("patch_norm":"none","act_layer":"gelu","mlp_layer":"mlp"})";
  EXPECT_EQ(write_model_args({}, base).dump(), names);
  Config back = base;
  const Json json = Json::parse(names);
  read_model_args(JsonFields(json, "args"), back);
  EXPECT_EQ(write_model_args(back).dump(), "{}");
}

TEST(ModelArgs, SecondNamesOfTimmAreReadAndNeverWritten) {
  EXPECT_TRUE(read(R"({"scale_attn_norm": true})").scale_attn_inner);
  EXPECT_TRUE(read(R"({"scale_mlp_norm": true})").scale_mlp);
  EXPECT_EQ(read(R"({"num_reg_tokens": 4})").reg_tokens, 4);
  EXPECT_TRUE(read(R"({"use_pre_transformer_norm": true})").pre_norm);
  EXPECT_FALSE(read(R"({"use_post_transformer_norm": false})").final_norm);
  EXPECT_EQ(read(R"({"use_fc_norm": false})").fc_norm, false);
  EXPECT_EQ(read(R"({"use_abs_pos_emb": false})").pos_embed, PositionEmbedding::none);
  EXPECT_EQ(read(R"({"use_abs_pos_emb": true})").pos_embed, PositionEmbedding::learned);
  EXPECT_EQ(read(R"({"attn_type": "rope"})").attn_type, AttentionType::plain);
  EXPECT_EQ(write_model_args(read(R"({"qkv_fused": false})")).dump(), "{}");
  EXPECT_EQ(write_model_args(read(R"({"num_reg_tokens": 4, "use_fc_norm": false})")).dump(),
            R"({"fc_norm":false,"reg_tokens":4})");
}

TEST(ModelArgs, ArgumentsWithOneValueAreAcceptedAtThatValue) {
  EXPECT_NO_THROW(read(R"({"dynamic_img_pad": false, "fix_init": false, "embed_norm_layer": null})"));
  EXPECT_NO_THROW(read(R"({"dynamic_img_pad": null, "fix_init": null})"));
  EXPECT_ERROR(error_of([] { read(R"({"dynamic_img_pad": true})"); }), "args: dynamic_img_pad", "true");
  EXPECT_ERROR(error_of([] { read(R"({"fix_init": 1})"); }), "args: fix_init", "1");
  EXPECT_ERROR(error_of([] { read(R"({"embed_norm_layer": "x"})"); }), "args: embed_norm_layer", "\"x\"");
}

TEST(ModelArgs, ChoicesNameTheirValues) {
  const std::pair<const char*, const char*> choices[] = {
      {"global_pool", R"("token", "avg", "token_avg", "map", "")"},
      {"attn_type", R"("", "rope", "eva")"},
      {"norm_layer", R"("layernorm", "rmsnorm")"},
      {"pos_embed", R"("learn", "sinusoidal", "sincos2d", "none")"},
      {"rel_pos_interp", R"("geometric", "bilinear")"},
      {"rope_type", R"("cat", "dinov3", "mixed")"},
      {"rope_grid_indexing", R"("ij", "xy")"},
      {"patch_norm", R"("none", "pre", "post", "both")"},
      {"act_layer", R"("gelu", "gelu_tanh", "quick_gelu", "relu", "silu")"},
      {"mlp_layer", R"("mlp", "swiglu", "swiglu_packed")"}};
  for (const auto& [name, known] : choices) {
    const std::string json = str("{\"", name, "\": \"other\"}");
    EXPECT_EQ(error_of([&] { read(json); }), str("args: ", name, ": expected one of ", known, ", got \"other\""));
  }
  EXPECT_ERROR(error_of([] { read(R"({"pos_interp": {"offset": 0.1, "cubic": true}})"); }), "args: pos_interp.cubic",
               "an unknown field");
  EXPECT_ERROR(error_of([] { read(R"({"pos_interp": true})"); }), "args: pos_interp", "true");
}

TEST(ModelArgs, UnknownKeysListTheKnownOnesAndTheCallers) {
  const std::string message = error_of([] { read(R"({"dpth": 3})", {"optimizer", "epochs"}); });
  EXPECT_TRUE(
      message.starts_with("args: dpth: expected one of the fields optimizer epochs img_size patch_size in_chans "))
      << message;
  EXPECT_TRUE(contains(message, " weight_init scale_attn_norm ")) << message;
  EXPECT_TRUE(message.ends_with(" use_abs_pos_emb qkv_fused, got an unknown field; did you mean depth?")) << message;
  // The caller reads its own keys itself.
  EXPECT_TRUE(contains(error_of([] { read(R"({"epochs": 3})", {"epochs"}); }), "epochs: expected one of the fields"));
}

}  // namespace
}  // namespace vitrail::models
