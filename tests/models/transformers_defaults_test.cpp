// SPDX-License-Identifier: Apache-2.0
// Fields of transformers' configuration classes: the defaults of absent ones, and where given ones go.
#include <gtest/gtest.h>

#include "tests/support/messages.h"
#include "vitrail/models/model_config.h"

namespace vitrail::models {
namespace {

using VitConfig = VisionTransformerConfig;

ModelConfig parse_defaults(const std::string& type, const std::string& fields = "") {
  return parse_model_config("{\"model_type\": \"" + type + "\"" + (fields.empty() ? "" : ", " + fields) + "}", "",
                            "config.json");
}

void expect_sizes(const VitConfig& vit, int64_t image, int64_t patch, int64_t width, int64_t depth, int64_t heads) {
  EXPECT_EQ(vit.img_size, (std::array<int64_t, 2>{image, image}));
  EXPECT_EQ(vit.patch_size, (std::array<int64_t, 2>{patch, patch}));
  EXPECT_EQ(vit.in_chans, 3);
  EXPECT_EQ(vit.embed_dim, width);
  EXPECT_EQ(vit.depth, depth);
  EXPECT_EQ(vit.num_heads, heads);
  EXPECT_EQ(vit.attn_drop_rate, 0);
  EXPECT_EQ(vit.proj_drop_rate, 0);
  EXPECT_EQ(vit.pos_drop_rate, 0);
}

TEST(TransformersDefaults, OfViT) {
  const VitConfig vit = parse_defaults("vit").vit;
  expect_sizes(vit, 224, 16, 768, 12, 12);
  EXPECT_EQ(vit.mlp_hidden, 3072);
  EXPECT_TRUE(vit.qkv_bias);
  EXPECT_EQ(vit.act_layer, kernels::Activation::gelu);
  EXPECT_EQ(vit.norm_eps, 1e-12);
  EXPECT_EQ(parse_defaults("vit_msn").vit.norm_eps, 1e-6);
  EXPECT_EQ(vit.num_classes, 0);
  EXPECT_FALSE(vit.dist_token);
  const VitConfig ijepa = parse_defaults("ijepa").vit;
  EXPECT_FALSE(ijepa.class_token);
  EXPECT_EQ(ijepa.global_pool, GlobalPool::avg);
}

TEST(TransformersDefaults, OfDeiTsDistillationToken) {
  const auto deit = [](const char* ending) {
    return parse_defaults("deit", str(R"("architectures": ["DeiTForImageClassification)", ending, "\"]")).vit;
  };
  EXPECT_TRUE(deit("WithTeacher").dist_token);
  EXPECT_EQ(deit("WithTeacher").reg_tokens, 0);
  EXPECT_FALSE(deit("").dist_token);
  EXPECT_EQ(deit("").reg_tokens, 1);
  EXPECT_EQ(deit("").num_classes, 2);
}

TEST(TransformersDefaults, OfBeit) {
  const VitConfig beit = parse_defaults("beit").vit;
  expect_sizes(beit, 224, 16, 768, 12, 12);
  EXPECT_EQ(beit.init_values, 0.1);
  EXPECT_EQ(beit.drop_path_rate, 0.1);
  EXPECT_EQ(beit.norm_eps, 1e-12);
  EXPECT_EQ(beit.pos_embed, PositionEmbedding::none);
  EXPECT_FALSE(beit.use_rel_pos_bias);
  EXPECT_FALSE(beit.use_shared_rel_pos_bias);
  EXPECT_EQ(beit.global_pool, GlobalPool::avg);
  EXPECT_EQ(beit.fc_norm, true);
  EXPECT_EQ(parse_defaults("beit", R"("use_absolute_position_embeddings": true)").vit.pos_embed,
            PositionEmbedding::learned);
  EXPECT_TRUE(parse_defaults("beit", R"("use_relative_position_bias": true)").vit.use_rel_pos_bias);
  EXPECT_TRUE(parse_defaults("beit", R"("use_shared_relative_position_bias": true)").vit.use_shared_rel_pos_bias);
  EXPECT_EQ(parse_defaults("beit", R"("layer_scale_init_value": 0)").vit.init_values, std::nullopt);
  const VitConfig token = parse_defaults("beit", R"("use_mean_pooling": false)").vit;
  EXPECT_EQ(token.global_pool, GlobalPool::token);
  EXPECT_EQ(token.fc_norm, false);
  for (const char* size : {R"("image_size": [224, 240])", R"("patch_size": [16, 8])"})
    EXPECT_TRUE(testing::contains(testing::error_of([&] { parse_defaults("beit", size); }), "a square image"));
}

TEST(TransformersDefaults, OfDinov2AndItsRegisters) {
  const VitConfig dinov2 = parse_defaults("dinov2").vit;
  expect_sizes(dinov2, 224, 14, 768, 12, 12);
  EXPECT_EQ(dinov2.mlp_hidden, std::nullopt);
  EXPECT_EQ(dinov2.mlp_ratio, 4);
  EXPECT_EQ(dinov2.init_values, 1);
  EXPECT_EQ(dinov2.norm_eps, 1e-6);
  EXPECT_EQ(dinov2.mlp_layer, MlpLayer::mlp);
  EXPECT_EQ(dinov2.reg_tokens, 0);
  EXPECT_FALSE(dinov2.pos_interp.antialias);
  EXPECT_EQ(parse_defaults("dinov2", R"("use_swiglu_ffn": true)").vit.mlp_layer, MlpLayer::swiglu);
  EXPECT_EQ(parse_defaults("dinov2", R"("architectures": ["Dinov2ForImageClassification"])").vit.global_pool,
            GlobalPool::token_avg);
  const VitConfig registers = parse_defaults("dinov2_with_registers").vit;
  EXPECT_EQ(registers.patch_size, (std::array<int64_t, 2>{16, 16}));
  EXPECT_EQ(registers.reg_tokens, 4);
  EXPECT_TRUE(registers.no_embed_reg);
  EXPECT_TRUE(registers.pos_interp.antialias);
  EXPECT_EQ(parse_defaults("dinov2_with_registers", R"("num_register_tokens": 2)").vit.reg_tokens, 2);
}

TEST(TransformersDefaults, OfClipsTowers) {
  const ModelConfig clip = parse_defaults("clip");
  expect_sizes(clip.vit, 224, 32, 768, 12, 12);
  EXPECT_EQ(clip.vit.mlp_hidden, 3072);
  EXPECT_EQ(clip.vit.act_layer, kernels::Activation::quick_gelu);
  EXPECT_EQ(clip.vit.norm_eps, 1e-5);
  EXPECT_TRUE(clip.vit.pre_norm);
  EXPECT_TRUE(clip.vit.projection_head);
  EXPECT_EQ(clip.vit.num_classes, 512);
  ASSERT_TRUE(clip.text.has_value());
  EXPECT_EQ(clip.text->vocab_size, 49408);
  EXPECT_EQ(clip.text->context_length, 77);
  EXPECT_EQ(clip.text->embed_dim, 512);
  EXPECT_EQ(clip.text->depth, 12);
  EXPECT_EQ(clip.text->num_heads, 8);
  EXPECT_EQ(clip.text->mlp_hidden, 2048);
  EXPECT_EQ(clip.text->norm_eps, 1e-5);
  EXPECT_EQ(clip.text->output_dim, 512);
  EXPECT_EQ(clip.text->eos_token_id, 49407);
  EXPECT_EQ(clip.text->pool, TextPool::first_eos);
  EXPECT_TRUE(clip.text->causal);
  EXPECT_EQ(parse_defaults("clip", R"("text_config": {"eos_token_id": 2})").text->pool, TextPool::largest_id);
  EXPECT_EQ(parse_defaults("clip", R"("projection_dim": 256)").text->output_dim, 256);
  EXPECT_EQ(parse_defaults("clip", R"("projection_dim": 256)").vit.num_classes, 256);
  EXPECT_EQ(parse_defaults("clip_vision_model").vit.num_classes, 0);
  const ModelConfig alone = parse_defaults(
      "clip_vision_model", R"("architectures": ["CLIPVisionModelWithProjection"], "projection_dim": 64)");
  EXPECT_EQ(alone.vit.num_classes, 64);
  EXPECT_FALSE(alone.text.has_value());
  const VitConfig classifier = parse_defaults("clip", R"("architectures": ["CLIPForImageClassification"])").vit;
  EXPECT_EQ(classifier.global_pool, GlobalPool::avg);
  EXPECT_FALSE(classifier.projection_head);
}

TEST(TransformersDefaults, OfSiglipsTexts) {
  const ModelConfig siglip = parse_defaults("siglip");
  ASSERT_TRUE(siglip.text.has_value());
  EXPECT_EQ(siglip.text->vocab_size, 32000);
  EXPECT_EQ(siglip.text->context_length, 64);
  EXPECT_EQ(siglip.text->embed_dim, 768);
  EXPECT_EQ(siglip.text->num_heads, 12);
  EXPECT_EQ(siglip.text->mlp_hidden, 3072);
  EXPECT_EQ(siglip.text->norm_eps, 1e-6);
  EXPECT_EQ(siglip.text->output_dim, 768);
  EXPECT_FALSE(siglip.text->causal);
  EXPECT_EQ(siglip.text->pool, TextPool::last);
  EXPECT_EQ(siglip.text->loss, DualLoss::sigmoid);
  EXPECT_EQ(parse_defaults("siglip", R"("text_config": {"projection_size": 99})").text->output_dim, 99);
}

TEST(TransformersDefaults, OfAimv2) {
  const VitConfig aimv2 = parse_defaults("aimv2_vision_model").vit;
  expect_sizes(aimv2, 224, 14, 1024, 24, 8);
  EXPECT_EQ(aimv2.mlp_hidden, 2816);
  EXPECT_EQ(aimv2.norm_eps, 1e-5);
  EXPECT_EQ(aimv2.norm_layer, nn::NormLayer::rms_norm);
  EXPECT_FALSE(aimv2.qkv_bias);
  EXPECT_FALSE(aimv2.class_token);
  EXPECT_EQ(aimv2.pos_embed, PositionEmbedding::learned);
  EXPECT_EQ(aimv2.global_pool, GlobalPool::map);
  EXPECT_EQ(parse_defaults("aimv2_vision_model", R"("use_head": false)").vit.global_pool, GlobalPool::avg);
  EXPECT_EQ(parse_defaults("aimv2_vision_model", R"("is_native": true)").vit.pos_embed, PositionEmbedding::sincos2d);
  EXPECT_THROW(parse_defaults("aimv2_vision_model", R"("hidden_act": "gelu")"), Error);
  EXPECT_THROW(parse_defaults("aimv2_vision_model", R"("qkv_bias": true)"), Error);
  EXPECT_TRUE(parse_defaults("aimv2_vision_model", R"("qkv_bias": true, "mlp_bias": true)").vit.proj_bias);
}

// Each field has another value than its default.
TEST(TransformersFields, AreReadInAllFamilies) {
  const std::string fields =
      R"("image_size": [32, 48], "patch_size": [4, 8], "num_channels": 1, "hidden_size": 24, "num_hidden_layers": 5,
         "num_attention_heads": 3, "intermediate_size": 60, "layer_norm_eps": 0.25, "hidden_act": "relu",
         "attention_probs_dropout_prob": 0.125, "hidden_dropout_prob": 0.375)";
  const VitConfig vit = parse_defaults("vit", fields).vit;
  EXPECT_EQ(vit.img_size, (std::array<int64_t, 2>{32, 48}));
  EXPECT_EQ(vit.patch_size, (std::array<int64_t, 2>{4, 8}));
  EXPECT_EQ(vit.in_chans, 1);
  EXPECT_EQ(vit.embed_dim, 24);
  EXPECT_EQ(vit.depth, 5);
  EXPECT_EQ(vit.num_heads, 3);
  EXPECT_EQ(vit.mlp_hidden, 60);
  EXPECT_EQ(vit.norm_eps, 0.25);
  EXPECT_EQ(vit.act_layer, kernels::Activation::relu);
  EXPECT_EQ(vit.attn_drop_rate, 0.125);
  EXPECT_EQ(vit.proj_drop_rate, 0.375);
  EXPECT_EQ(vit.pos_drop_rate, 0.375);
  EXPECT_EQ(parse_defaults("clip", R"("vision_config": {"attention_dropout": 0.5})").vit.attn_drop_rate, 0.5);
  EXPECT_EQ(parse_defaults("clip", R"("vision_config": {"hidden_size": 24, "num_attention_heads": 3})").vit.embed_dim,
            24);
}

}  // namespace
}  // namespace vitrail::models
