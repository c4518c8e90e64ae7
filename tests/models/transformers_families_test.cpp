// SPDX-License-Identifier: Apache-2.0
// The families of transformers' config.json: fields and class names that only some of them have, and their messages.
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/models/huggingface_config_internal.h"

namespace vitrail::models {
namespace {

using VitConfig = VisionTransformerConfig;
using Pair = std::array<int64_t, 2>;
using kernels::Activation;
using testing::contains;
using testing::error_of;

ModelConfig parse_family(const std::string& type, const std::string& fields = "") {
  return parse_model_config("{\"model_type\": \"" + type + "\"" + (fields.empty() ? "" : ", " + fields) + "}", "",
                            "config.json");
}

ModelConfig of_class(const std::string& type, const std::string& name, const std::string& fields = "") {
  return parse_family(type, "\"architectures\": [\"" + name + "\"]" + (fields.empty() ? "" : ", " + fields));
}

TEST(TransformersFamilies, UnknownTypesListTheKnownOnes) {
  EXPECT_ERROR(error_of([] { parse_family("bert"); }), "config.json: model_type", "\"bert\"");
  for (const char* type : {"vit",
                           "vit_mae",
                           "vit_msn",
                           "ijepa",
                           "deit",
                           "dinov2",
                           "dinov2_with_registers",
                           "dinov3_vit",
                           "clip",
                           "clip_vision_model",
                           "metaclip_2",
                           "metaclip_2_vision_model",
                           "siglip",
                           "siglip_vision_model",
                           "beit",
                           "data2vec-vision",
                           "internvl_vision",
                           "tipsv2_vision_model",
                           "aimv2",
                           "aimv2_vision_model"}) {
    EXPECT_EQ(parse_family(type).architecture, type);
  }
}

// Positions are interpolated without antialiasing and offset, and there is no head of classes.
TEST(TransformersFamilies, HaveTransformersInterpolationAndNoHead) {
  for (const char* type : {"vit", "deit", "dinov2", "clip_vision_model", "siglip_vision_model", "beit",
                           "internvl_vision", "aimv2_vision_model"}) {
    const VitConfig vit = parse_family(type).vit;
    EXPECT_FALSE(vit.pos_interp.antialias) << type;
    EXPECT_FALSE(vit.pos_interp.bilinear) << type;
    EXPECT_EQ(vit.pos_interp.offset, 0) << type;
    EXPECT_EQ(vit.num_classes, 0) << type;
  }
}

TEST(TransformersFamilies, OnlySomeTakeImagesOfAnySize) {
  for (const char* type : {"dinov2", "dinov2_with_registers", "dinov3_vit", "beit", "data2vec-vision",
                           "internvl_vision", "tipsv2_vision_model"}) {
    EXPECT_TRUE(parse_family(type).vit.dynamic_img_size) << type;
  }
  for (const char* type : {"vit", "deit", "ijepa", "clip", "siglip", "aimv2"}) {
    EXPECT_FALSE(parse_family(type).vit.dynamic_img_size) << type;
  }
}

TEST(TransformersFamilies, DropoutOfAttentionHasTwoNames) {
  EXPECT_EQ(parse_family("vit", R"("attention_dropout": 0.25)").vit.attn_drop_rate, 0.25);
  EXPECT_EQ(parse_family("vit", R"("attention_probs_dropout_prob": 0.5)").vit.attn_drop_rate, 0.5);
  EXPECT_EQ(parse_family("vit", R"("attention_probs_dropout_prob": 0.5, "attention_dropout": 0.25)").vit.attn_drop_rate,
            0.5);
}

TEST(TransformersFamilies, ViTsDifferInTokensAndNorms) {
  EXPECT_EQ(parse_family("vit_mae").vit.norm_eps, 1e-12);
  EXPECT_EQ(parse_family("deit").vit.norm_eps, 1e-12);
  EXPECT_EQ(parse_family("vit_msn", R"("layer_norm_eps": 0.5)").vit.norm_eps, 0.5);
  for (const char* type : {"vit", "vit_mae", "vit_msn"}) {
    const VitConfig vit = parse_family(type).vit;
    EXPECT_TRUE(vit.class_token) << type;
    EXPECT_EQ(vit.reg_tokens, 0) << type;
    EXPECT_EQ(vit.global_pool, GlobalPool::token) << type;
    EXPECT_EQ(vit.fc_norm, std::nullopt) << type;
    EXPECT_FALSE(vit.dist_token) << type;
  }
  EXPECT_EQ(parse_family("ijepa").vit.fc_norm, false);
  EXPECT_EQ(parse_family("ijepa").vit.reg_tokens, 0);
  EXPECT_FALSE(parse_family("vit", R"("qkv_bias": false)").vit.qkv_bias);
  const VitConfig teacher = of_class("deit", "DeiTForImageClassificationWithTeacher", R"("num_labels": 5)").vit;
  EXPECT_TRUE(teacher.dist_token);
  EXPECT_EQ(teacher.num_classes, 5);
  EXPECT_FALSE(of_class("vit", "ViTForImageClassificationWithTeacher").vit.dist_token) << "only of DeiT";
  EXPECT_EQ(of_class("vit", "ViTForImageClassification").vit.num_classes, 2);
  EXPECT_EQ(parse_family("vit", R"("architectures": "ViTForImageClassification")").vit.num_classes, 0) << "no list";
  EXPECT_EQ(parse_family("vit", R"("architectures": [3, "ViTForImageClassification"])").vit.num_classes, 2);
  EXPECT_EQ(parse_family("vit", R"("architectures": ["ViTForImageClassificationX"])").vit.num_classes, 0);
}

TEST(TransformersFamilies, Dinov2HasItsFields) {
  const VitConfig vit = parse_family("dinov2", R"("qkv_bias": false, "mlp_ratio": 3, "layerscale_value": 0.5,
      "drop_path_rate": 0.25, "num_register_tokens": 3, "intermediate_size": 77, "hidden_act": "relu")")
                            .vit;
  EXPECT_FALSE(vit.qkv_bias);
  EXPECT_EQ(vit.mlp_ratio, 3);
  EXPECT_EQ(vit.mlp_hidden, std::nullopt) << "the class has no such field";
  EXPECT_EQ(vit.init_values, 0.5);
  EXPECT_EQ(vit.drop_path_rate, 0.25);
  EXPECT_EQ(vit.reg_tokens, 0) << "without registers";
  EXPECT_FALSE(vit.no_embed_reg);
  EXPECT_EQ(vit.act_layer, Activation::relu);
  EXPECT_EQ(parse_family("dinov2").vit.drop_path_rate, 0);
  EXPECT_TRUE(parse_family("dinov2").vit.qkv_bias);
  EXPECT_EQ(parse_family("dinov2").vit.global_pool, GlobalPool::token);
  EXPECT_FALSE(parse_family("dinov2_with_registers").vit.pos_interp.bilinear);
  EXPECT_EQ(of_class("dinov2_with_registers", "Dinov2WithRegistersForImageClassification").vit.num_classes, 2);
}

TEST(TransformersFamilies, Tipsv2IsADinov2OfAnotherSize) {
  const VitConfig tips = parse_family("tipsv2_vision_model").vit;
  EXPECT_EQ(tips.img_size, (Pair{448, 448}));
  EXPECT_EQ(tips.patch_size, (Pair{14, 14}));
  EXPECT_EQ(tips.reg_tokens, 1);
  EXPECT_TRUE(tips.no_embed_reg);
  EXPECT_TRUE(tips.pos_interp.antialias);
  EXPECT_TRUE(tips.pos_interp.bilinear);
  EXPECT_EQ(parse_family("tipsv2_vision_model", R"("image_size": 28)").vit.img_size, (Pair{28, 28}));
  EXPECT_EQ(parse_family("tipsv2_vision_model", R"("num_register_tokens": 0)").vit.reg_tokens, 0);
}

TEST(TransformersFamilies, Dinov3HasRotaryPositions) {
  const VitConfig vit = parse_family("dinov3_vit").vit;
  EXPECT_EQ(vit.pos_embed, PositionEmbedding::none);
  EXPECT_TRUE(vit.use_rot_pos_emb);
  EXPECT_EQ(vit.rope_type, nn::RotaryType::dinov3);
  EXPECT_TRUE(vit.rope_rotate_half);
  EXPECT_EQ(vit.init_values, 1);
  EXPECT_EQ(vit.drop_path_rate, 0);
  EXPECT_EQ(vit.depth, 12);
  EXPECT_EQ(vit.patch_size, (Pair{16, 16}));
  EXPECT_TRUE(vit.qkv_bias);
  EXPECT_FALSE(vit.swiglu_mlp);
  const VitConfig given =
      parse_family("dinov3_vit", R"("num_register_tokens": 4, "layerscale_value": 0.25, "rope_theta": 50,
      "drop_path_rate": 0.125)")
          .vit;
  EXPECT_EQ(given.reg_tokens, 4);
  EXPECT_EQ(given.init_values, 0.25);
  EXPECT_EQ(given.rope_temperature, 50);
  EXPECT_EQ(given.drop_path_rate, 0.125);
  for (const char* bias : {"proj_bias", "mlp_bias"}) {
    EXPECT_EQ(error_of([&] { parse_family("dinov3_vit", str("\"", bias, "\": false")); }),
              str("config.json: ", bias, ": expected true, got false"));
  }
  EXPECT_ERROR(error_of([] { parse_family("dinov3_vit", R"("use_gated_mlp": true)"); }), "config.json: hidden_act",
               "another activation");
  EXPECT_ERROR(error_of([] { parse_family("dinov3_vit", R"("query_bias": false)"); }), "config.json: query_bias",
               "another combination");
}

TEST(TransformersFamilies, ClipsTowersAloneHaveNoTexts) {
  for (const char* type : {"clip_vision_model", "metaclip_2_vision_model"}) {
    const ModelConfig alone = parse_family(type);
    EXPECT_FALSE(alone.text) << type;
    EXPECT_FALSE(alone.vit.projection_head) << type;
    EXPECT_TRUE(alone.vit.pre_norm) << type;
    const ModelConfig projected = of_class(type, "XVisionModelWithProjection");
    EXPECT_EQ(projected.vit.num_classes, 512) << type;
    EXPECT_TRUE(projected.vit.projection_head) << type;
  }
  const ModelConfig classifier = of_class("clip", "CLIPForImageClassification", R"("num_labels": 4)");
  EXPECT_FALSE(classifier.text);
  EXPECT_EQ(classifier.vit.num_classes, 4);
  EXPECT_FALSE(classifier.vit.final_norm);
  EXPECT_TRUE(parse_family("clip").vit.final_norm);
  EXPECT_EQ(parse_family("clip").vit.global_pool, GlobalPool::token);
  EXPECT_EQ(parse_family("metaclip_2").text->pool, TextPool::first_eos);
  EXPECT_EQ(parse_family("clip").text->loss, DualLoss::softmax);
  EXPECT_FALSE(parse_family("clip").text->projection_bias);
}

// transformers 5.24 gives these values: CLIPConfig(vision_config={…}, vision_config_dict={…}, …).
TEST(TransformersFamilies, OldDictsOfClipsTowersReplaceTheirFields) {
  for (const char* type : {"clip", "metaclip_2"}) {
    const ModelConfig config = parse_family(type, R"(
        "vision_config": {"hidden_size": 32, "num_attention_heads": 4, "hidden_act": "gelu", "image_size": 64},
        "vision_config_dict": {"hidden_size": 24, "num_attention_heads": 2, "image_size": 48},
        "text_config": {"hidden_size": 40, "eos_token_id": 2, "num_attention_heads": 4, "vocab_size": 99,
                        "hidden_act": "gelu"},
        "text_config_dict": {"hidden_size": 16, "num_hidden_layers": 3})");
    EXPECT_EQ(config.vit.embed_dim, 24) << type;
    EXPECT_EQ(config.vit.num_heads, 2) << type;
    EXPECT_EQ(config.vit.act_layer, Activation::quick_gelu) << type;
    EXPECT_EQ(config.vit.img_size, (Pair{48, 48})) << type;
    EXPECT_EQ(config.vit.patch_size, (Pair{32, 32})) << type;
    EXPECT_EQ(config.text->embed_dim, 16) << type;
    EXPECT_EQ(config.text->depth, 3) << type;
    EXPECT_EQ(config.text->eos_token_id, 49407) << type;
    EXPECT_EQ(config.text->num_heads, 8) << type;
    EXPECT_EQ(config.text->vocab_size, 49408) << type;
    EXPECT_EQ(config.text->act_layer, Activation::quick_gelu) << type;
  }
  const ModelConfig null = parse_family("clip", R"("vision_config": {"hidden_size": 24}, "vision_config_dict": null)");
  EXPECT_EQ(null.vit.embed_dim, 24);
}

TEST(TransformersFamilies, TextsHaveTheirFields) {
  const std::string fields = R"("text_config": {"vocab_size": 99, "max_position_embeddings": 33, "hidden_size": 24,
      "num_hidden_layers": 5, "num_attention_heads": 3, "intermediate_size": 60, "layer_norm_eps": 0.25,
      "hidden_act": "relu", "eos_token_id": 98, "projection_size": 44})";
  for (const char* type : {"clip", "siglip"}) {
    const TextTransformerConfig text = *parse_family(type, fields).text;
    EXPECT_EQ(text.vocab_size, 99);
    EXPECT_EQ(text.context_length, 33);
    EXPECT_EQ(text.embed_dim, 24);
    EXPECT_EQ(text.depth, 5);
    EXPECT_EQ(text.num_heads, 3);
    EXPECT_EQ(text.mlp_hidden, 60);
    EXPECT_EQ(text.norm_eps, 0.25);
    EXPECT_EQ(text.act_layer, Activation::relu);
    EXPECT_EQ(text.output_dim, std::string(type) == "clip" ? 512 : 44);
  }
  EXPECT_EQ(parse_family("clip", fields).text->eos_token_id, 98);
  EXPECT_EQ(parse_family("clip").text->act_layer, Activation::quick_gelu);
  const TextTransformerConfig siglip = *parse_family("siglip", R"("text_config": {"hidden_size": 24})").text;
  EXPECT_EQ(siglip.output_dim, 24) << "the width of the tower";
  EXPECT_EQ(siglip.act_layer, Activation::gelu_tanh);
  EXPECT_EQ(siglip.depth, 12);
  EXPECT_TRUE(siglip.projection_bias);
}

TEST(TransformersFamilies, SiglipPoolsByItsHead) {
  EXPECT_EQ(parse_family("siglip", R"("vision_config": {"vision_use_head": false})").vit.global_pool, GlobalPool::none);
  EXPECT_FALSE(parse_family("siglip_vision_model").text);
  EXPECT_EQ(parse_family("siglip_vision_model").vit.global_pool, GlobalPool::map);
  EXPECT_FALSE(of_class("siglip", "SiglipForImageClassification").text);
  EXPECT_EQ(of_class("siglip", "SiglipForImageClassification").vit.num_classes, 2);
  for (const char* size : {R"("image_size": [36, 32])", R"("image_size": [32, 36])"}) {
    EXPECT_TRUE(parse_family("siglip_vision_model", str(size, R"(, "patch_size": 8)")).vit.allow_remainder) << size;
  }
}

TEST(TransformersFamilies, BeitPoolsByItsClass) {
  const VitConfig beit = parse_family("beit").vit;
  EXPECT_EQ(beit.attn_type, AttentionType::eva);
  EXPECT_EQ(beit.rel_pos_interp, nn::RelativePositionResampling::bilinear);
  EXPECT_TRUE(beit.final_norm);
  EXPECT_EQ(parse_family("beit", R"("layer_scale_init_value": 0.5)").vit.init_values, 0.5);
  EXPECT_EQ(parse_family("beit", R"("layer_scale_init_value": -1)").vit.init_values, std::nullopt);
  EXPECT_EQ(parse_family("beit", R"("drop_path_rate": 0.25)").vit.drop_path_rate, 0.25);
  const VitConfig masked = of_class("beit", "BeitForMaskedImageModeling").vit;
  EXPECT_EQ(masked.fc_norm, false);
  EXPECT_EQ(masked.global_pool, GlobalPool::avg);
  EXPECT_TRUE(masked.final_norm);
  EXPECT_EQ(masked.num_classes, 0);
  EXPECT_FALSE(of_class("data2vec-vision", "Data2VecVisionModel").vit.final_norm);
  EXPECT_TRUE(of_class("data2vec-vision", "Data2VecVisionModel", R"("use_mean_pooling": false)").vit.final_norm);
  EXPECT_EQ(of_class("beit", "BeitForImageClassification", R"("num_labels": 6)").vit.num_classes, 6);
  EXPECT_ERROR(error_of([] { parse_family("beit", R"("image_size": [224, 240], "patch_size": [16, 8])"); }),
               "config.json: image_size", "224×240 and 16×8");
}

TEST(TransformersFamilies, InternvlHasItsDefaultsAndFields) {
  const VitConfig vit = parse_family("internvl_vision").vit;
  EXPECT_EQ(vit.img_size, (Pair{448, 448}));
  EXPECT_EQ(vit.patch_size, (Pair{14, 14}));
  EXPECT_EQ(vit.embed_dim, 1024);
  EXPECT_EQ(vit.depth, 24);
  EXPECT_EQ(vit.num_heads, 16);
  EXPECT_EQ(vit.mlp_hidden, 4096);
  EXPECT_EQ(vit.norm_eps, 1e-6);
  EXPECT_EQ(vit.act_layer, Activation::gelu);
  EXPECT_FALSE(vit.qkv_bias);
  EXPECT_EQ(vit.init_values, 0.1);
  EXPECT_EQ(vit.norm_layer, nn::NormLayer::layer_norm);
  EXPECT_EQ(vit.pos_embed, PositionEmbedding::learned);
  EXPECT_EQ(vit.global_pool, GlobalPool::avg);
  EXPECT_FALSE(vit.final_norm);
  EXPECT_EQ(parse_family("internvl_vision", R"("image_size": 224)").vit.img_size, (Pair{224, 224}));
  EXPECT_TRUE(parse_family("internvl_vision", R"("attention_bias": true)").vit.qkv_bias);
  EXPECT_EQ(parse_family("internvl_vision", R"("layer_scale_init_value": 0.5)").vit.init_values, 0.5);
  EXPECT_EQ(parse_family("internvl_vision", R"("norm_type": "rms_norm")").vit.norm_layer, nn::NormLayer::rms_norm);
  EXPECT_EQ(parse_family("internvl_vision", R"("norm_type": "layer_norm")").vit.norm_layer, nn::NormLayer::layer_norm);
  EXPECT_EQ(parse_family("internvl_vision", R"("use_absolute_position_embeddings": false)").vit.pos_embed,
            PositionEmbedding::none);
  const VitConfig token = parse_family("internvl_vision", R"("use_mean_pooling": false)").vit;
  EXPECT_EQ(token.global_pool, GlobalPool::token);
  EXPECT_TRUE(token.final_norm);
  EXPECT_ERROR(error_of([] { parse_family("internvl_vision", R"("use_qk_norm": true)"); }), "config.json: use_qk_norm",
               "true");
}

TEST(TransformersFamilies, Aimv2HasGatesNormsAndAPoolOfItsOwn) {
  const VitConfig vit = parse_family("aimv2").vit;
  EXPECT_EQ(vit.mlp_layer, MlpLayer::swiglu);
  EXPECT_EQ(vit.patch_norm, PatchNorm::post);
  EXPECT_FALSE(vit.proj_bias);
  EXPECT_FALSE(vit.attn_pool_qkv_bias);
  EXPECT_FALSE(vit.attn_pool_q_proj);
  EXPECT_EQ(vit.attn_pool_mlp_ratio, 0);
  EXPECT_EQ(vit.fc_norm, false);
  EXPECT_EQ(vit.act_layer, Activation::gelu) << "the gate has none";
  EXPECT_EQ(parse_family("aimv2", R"("vision_config": {"rms_norm_eps": 0.25, "hidden_act": "swish"})").vit.norm_eps,
            0.25);
  EXPECT_TRUE(parse_family("aimv2_vision_model", R"("is_native": true)").vit.dynamic_img_size);
  const VitConfig biased = parse_family("aimv2_vision_model", R"("qkv_bias": true, "mlp_bias": true)").vit;
  EXPECT_TRUE(biased.qkv_bias);
  EXPECT_TRUE(biased.attn_pool_qkv_bias);
  EXPECT_ERROR(error_of([] { parse_family("aimv2_vision_model", R"("hidden_act": "gelu")"); }),
               "config.json: hidden_act", "\"gelu\"");
  EXPECT_ERROR(error_of([] { parse_family("aimv2_vision_model", R"("qkv_bias": true)"); }), "config.json: mlp_bias",
               "false");
  EXPECT_ERROR(error_of([] { parse_family("aimv2", R"("vision_config": {"mlp_bias": true})"); }),
               "config.json: vision_config: mlp_bias", "true");
}

TEST(TransformersFamilies, ClassNamesAreThoseOfTheirIndices) {
  const auto labels = [](const std::string& map) {
    return of_class("vit", "ViTForImageClassification", "\"id2label\": " + map).labels;
  };
  EXPECT_EQ(labels(R"({"2": "c", "0": "a", "1": "b"})"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(labels(R"({"00": "a"})"), (std::vector<std::string>{"a"}));
  EXPECT_EQ(labels("{}"), std::vector<std::string>{});
  const std::pair<const char*, const char*> faults[] = {{R"({"0": "a", "2": "b"})", "class indices 0 to 1"},
                                                        {R"({"-1": "a"})", "class indices 0 to 0"},
                                                        {R"({"": "a"})", "class indices 0 to 0"},
                                                        {R"({"000000000": "a"})", "class indices 0 to 0"}};
  for (const auto& [map, part] : faults) {
    const std::string message = error_of([&, &m = map] { labels(m); });
    EXPECT_TRUE(message.starts_with(str("config.json: id2label: expected ", part, " with a name each, got \"")))
        << message;
  }
  EXPECT_ERROR(error_of([&] { labels(R"({"0": "a", "7": "b"})"); }), "config.json: id2label", "\"7\"");
}

TEST(TransformersFamilies, ActivationsThatAreNotSupportedAreNamed) {
  EXPECT_ERROR(error_of([] { parse_family("vit", R"("hidden_act": "mish")"); }), "config.json: hidden_act", "\"mish\"");
  EXPECT_ERROR(error_of([] { parse_family("clip", R"("vision_config": {"hidden_act": "mish"})"); }),
               "config.json: vision_config: hidden_act", "\"mish\"");
  EXPECT_TRUE(contains(error_of([] { parse_family("clip", R"("text_config": {"hidden_act": "mish"})"); }),
                       "config.json: text_config: hidden_act: "));
}

}  // namespace
}  // namespace vitrail::models
