// SPDX-License-Identifier: Apache-2.0
// Every field of OpenCLIP's open_clip_config.json, the defaults of its classes, and what is refused.
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/load.h"

namespace vitrail::models {
namespace {

using Config = VisionTransformerConfig;
using Pair = std::array<int64_t, 2>;
using kernels::Activation;
using testing::error_of;

ModelConfig open_clip(const std::string& vision, const std::string& text = "", const std::string& model = "",
                      const std::string& preprocessing = "") {
  return parse_model_config("{\"model_cfg\": {" + model + "\"vision_cfg\": {" + vision + "}, \"text_cfg\": {" + text +
                                "}}, \"preprocess_cfg\": {" + preprocessing + "}}",
                            "", "file");
}

TEST(OpenClipConfig, AbsentFieldsHaveItsDefaults) {
  const ModelConfig config = open_clip("");
  EXPECT_EQ(config.architecture, "open_clip");
  EXPECT_EQ(config.key_map, "");
  const Config& vit = config.vit;
  EXPECT_EQ(vit.img_size, (Pair{224, 224}));
  EXPECT_EQ(vit.patch_size, (Pair{16, 16}));
  EXPECT_EQ(vit.embed_dim, 768);
  EXPECT_EQ(vit.depth, 12);
  EXPECT_EQ(vit.num_heads, 12);
  EXPECT_EQ(vit.mlp_hidden, 3072);
  EXPECT_EQ(vit.act_layer, Activation::gelu);
  EXPECT_EQ(vit.norm_eps, 1e-5);
  EXPECT_EQ(vit.init_values, std::nullopt);
  EXPECT_EQ(vit.patch_drop_rate, 0);
  EXPECT_TRUE(vit.pre_norm);
  EXPECT_EQ(vit.patch_bias, false);
  EXPECT_EQ(vit.global_pool, GlobalPool::token);
  EXPECT_EQ(vit.fc_norm, false);
  EXPECT_EQ(vit.num_classes, 512);
  EXPECT_TRUE(vit.projection_head);
  ASSERT_TRUE(config.text);
  EXPECT_EQ(config.text->vocab_size, 49408);
  EXPECT_EQ(config.text->context_length, 77);
  EXPECT_EQ(config.text->embed_dim, 512);
  EXPECT_EQ(config.text->depth, 12);
  EXPECT_EQ(config.text->num_heads, 8);
  EXPECT_EQ(config.text->mlp_hidden, 2048);
  EXPECT_EQ(config.text->act_layer, Activation::gelu);
  EXPECT_EQ(config.text->norm_eps, 1e-5);
  EXPECT_EQ(config.text->loss, DualLoss::softmax);
  EXPECT_FALSE(config.text->class_token);
  EXPECT_EQ(config.preprocessing.input_size, (Pair{224, 224}));
}

// A file of model_configs/ has no model_cfg around it.
TEST(OpenClipConfig, MayBeAModelAlone) {
  const char* const towers = R"("embed_dim": 24, "vision_cfg": {"width": 128}, "text_cfg": {"layers": 3}})";
  const ModelConfig config = parse_model_config(std::string("{") + towers, "", "file");
  EXPECT_EQ(config.vit.embed_dim, 128);
  EXPECT_EQ(config.vit.num_classes, 24);
  EXPECT_EQ(config.text->depth, 3);
  EXPECT_EQ(config.preprocessing.mean, (std::vector<double>{0.48145466, 0.4578275, 0.40821073}));
  EXPECT_ERROR(error_of([] { parse_model_config(R"({"vision_cfg": {}, "text_cfg": {"layers": "x"}})", "", "file"); }),
               "file: text_cfg: layers", "\"x\"");
}

// All names of OpenCLIP are known: other architectures than Vision Transformers are errors that say so.
TEST(OpenClipConfig, HasTheNamesOfOpenClip) {
  const ModelConfig base = read_config("ViT-B-32");
  EXPECT_EQ(base.vit.patch_size, (Pair{32, 32}));
  EXPECT_EQ(base.text->vocab_size, 49408);
  EXPECT_EQ(read_config("ViT-SO400M-14-SigLIP-384").text->cleaning, TextCleaning::canonicalize);
  EXPECT_ERROR(error_of([] { read_config("RN50"); }), "RN50: vision_cfg: layers", "the stages of a ResNet");
  EXPECT_FALSE(open_clip_model("vit-b-32"));
}

TEST(OpenClipConfig, FieldsOfItsOwnTowerAreRead) {
  const Config vit = open_clip(R"("image_size": [32, 48], "patch_size": 8, "width": 60, "layers": 3, "head_width": 20,
      "mlp_ratio": 2.5, "ls_init_value": 0.5, "patch_dropout": 0.25, "no_ln_pre": true, "pool_type": "avg",
      "act_kwargs": {"approximate": "tanh"}, "norm_kwargs": {"eps": 0.125})",
                               "", R"("embed_dim": 44, )")
                         .vit;
  EXPECT_EQ(vit.img_size, (Pair{32, 48}));
  EXPECT_EQ(vit.patch_size, (Pair{8, 8}));
  EXPECT_EQ(vit.embed_dim, 60);
  EXPECT_EQ(vit.depth, 3);
  EXPECT_EQ(vit.num_heads, 3);
  EXPECT_EQ(vit.mlp_hidden, 150);
  EXPECT_EQ(vit.init_values, 0.5);
  EXPECT_EQ(vit.patch_drop_rate, 0.25);
  EXPECT_FALSE(vit.pre_norm);
  EXPECT_EQ(vit.global_pool, GlobalPool::avg);
  EXPECT_EQ(vit.act_layer, Activation::gelu_tanh);
  EXPECT_EQ(vit.norm_eps, 0.125);
  EXPECT_EQ(vit.num_classes, 44);
  EXPECT_EQ(open_clip(R"("act_kwargs": {"approximate": "none"})").vit.act_layer, Activation::gelu);
  // Rounded down, as int() of Python.
  EXPECT_EQ(open_clip(R"("width": 64, "mlp_ratio": 4.9231)").vit.mlp_hidden, 315);
}

TEST(OpenClipConfig, QuickGeluIsOfBothTowers) {
  const ModelConfig quick = open_clip("", "", R"("quick_gelu": true, )");
  EXPECT_EQ(quick.vit.act_layer, Activation::quick_gelu);
  EXPECT_EQ(quick.text->act_layer, Activation::quick_gelu);
  EXPECT_EQ(open_clip("", "", R"("quick_gelu": false, )").vit.act_layer, Activation::gelu);
  EXPECT_ERROR(error_of([] { open_clip(R"("act_kwargs": {"approximate": "tanh"})", "", R"("quick_gelu": true, )"); }),
               "file: model_cfg: vision_cfg: act_kwargs", "{\"approximate\":\"tanh\"}");
}

TEST(OpenClipConfig, TextsHaveTheirWidthAndLoss) {
  const TextTransformerConfig text = *open_clip("", R"("width": 60, "mlp_ratio": 1.5, "norm_kwargs": {"eps": 0.125},
      "act_kwargs": {"approximate": "tanh"})",
                                                R"("embed_dim": 44, "init_logit_bias": -10, )")
                                          .text;
  EXPECT_EQ(text.mlp_hidden, 90);
  EXPECT_EQ(text.norm_eps, 0.125);
  EXPECT_EQ(text.act_layer, Activation::gelu_tanh);
  EXPECT_EQ(text.output_dim, 44);
  EXPECT_EQ(text.loss, DualLoss::sigmoid);
  EXPECT_EQ(open_clip("", R"("width": 512, "proj_type": "none")").text->output_dim, 0) << "the token is the embedding";
  EXPECT_EQ(open_clip("", R"("width": 60, "proj_type": "linear")").text->output_dim, 512);
  EXPECT_ERROR(error_of([] { open_clip("", R"("width": 60, "proj_type": "none")"); }),
               "file: model_cfg: text_cfg: width", "60");
  EXPECT_ERROR(error_of([] { open_clip("", R"("proj_type": "mlp")"); }), "file: model_cfg: text_cfg: proj_type",
               "\"mlp\"");
  EXPECT_ERROR(error_of([] { open_clip("", R"("pool_type": "mean")"); }), "file: model_cfg: text_cfg: pool_type",
               "\"mean\"");
  for (const auto& [clean, cleaning] :
       {std::pair("lower", TextCleaning::lower), std::pair("whitespace", TextCleaning::whitespace),
        std::pair("canonicalize", TextCleaning::canonicalize)}) {
    EXPECT_EQ(open_clip("", str(R"("tokenizer_kwargs": {"clean": ")", clean, "\"}")).text->cleaning, cleaning);
  }
  EXPECT_ERROR(error_of([] { open_clip("", R"("tokenizer_kwargs": {"clean": "all"})"); }),
               "file: model_cfg: text_cfg: tokenizer_kwargs: clean", "\"all\"");
}

TEST(OpenClipConfig, OptionsThatAreNotSupportedMayHaveTheirDefaults) {
  const char* const options[] = {"qk_norm",          "scaled_cosine_attn", "scale_heads",
                                 "scale_attn_inner", "scale_attn",         "scale_fc"};
  for (const char* option : options) {
    for (const bool vision : {true, false}) {
      const auto parsed = [&](const char* value) {
        const std::string field = str("\"", option, "\": ", value);
        return vision ? open_clip(field) : open_clip("", field);
      };
      EXPECT_NO_THROW(parsed("false"));
      EXPECT_NO_THROW(parsed("null"));
      EXPECT_EQ(error_of([&] { parsed("true"); }), str("file: model_cfg: ", vision ? "vision_cfg" : "text_cfg", ": ",
                                                       option, ": expected false, got true"));
    }
  }
  EXPECT_EQ(open_clip("", R"("ls_init_value": 0.5)").text->init_values, 0.5);
  EXPECT_ERROR(error_of([] { open_clip("", R"("final_ln_after_pool": true)"); }),
               "file: model_cfg: text_cfg: final_ln_after_pool", "true");
  EXPECT_ERROR(error_of([] { open_clip(R"("pool_type": "argmax")"); }), "file: model_cfg: vision_cfg: pool_type",
               "\"argmax\"");
  EXPECT_ERROR(error_of([] { open_clip(R"("layers": [3, 4])"); }), "file: model_cfg: vision_cfg: layers",
               "the stages of a ResNet");
}

TEST(OpenClipConfig, AttentionalPoolsAreThoseOfCoCa) {
  const ModelConfig coca = open_clip(R"("attentional_pool": true)", R"("embed_cls": true)", R"("embed_dim": 96, )");
  EXPECT_EQ(coca.key_map, "open_clip_coca");
  EXPECT_EQ(coca.vit.global_pool, GlobalPool::map);
  EXPECT_TRUE(coca.vit.pool_include_prefix);
  EXPECT_TRUE(coca.vit.attn_pool_input_norms);
  EXPECT_EQ(coca.vit.fc_norm, true);
  EXPECT_EQ(coca.vit.attn_pool_mlp_ratio, 0);
  EXPECT_EQ(coca.vit.attn_pool_num_heads, 8);
  EXPECT_EQ(coca.vit.attn_pool_dim, 96);
  EXPECT_EQ(open_clip(R"("attentional_pool": false)").vit.global_pool, GlobalPool::token);
  EXPECT_EQ(open_clip(R"("attentional_pool": null)").vit.global_pool, GlobalPool::token);
  EXPECT_ERROR(error_of([] { open_clip(R"("attentional_pool": true, "pool_type": "avg")"); }),
               "file: model_cfg: vision_cfg: pool_type", "\"avg\"");
  EXPECT_ERROR(error_of([] { open_clip(R"("attentional_pool": true, "final_ln_after_pool": true)"); }),
               "file: model_cfg: vision_cfg: final_ln_after_pool", "true");
  const ModelConfig after = open_clip(R"("final_ln_after_pool": true)");
  EXPECT_EQ(after.vit.fc_norm, true);
  EXPECT_EQ(after.key_map, "open_clip_fc_norm");
}

TEST(OpenClipConfig, TowersOfTimmHaveTheirArguments) {
  const auto timm = [](const std::string& fields) {
    return open_clip(R"("timm_model_name": "vit_base_patch16_224", )" + fields, "", R"("embed_dim": 44, )");
  };
  const ModelConfig config = timm(R"("timm_drop_path": 0.25, "patch_dropout": 0.125, "image_size": 224,
      "vitrail_args": {"depth": 3})");
  EXPECT_EQ(config.architecture, "vit_base_patch16_224");
  EXPECT_EQ(config.vit.depth, 3);
  EXPECT_EQ(config.vit.drop_path_rate, 0.25);
  EXPECT_EQ(config.vit.patch_drop_rate, 0.125);
  EXPECT_EQ(config.vit.num_classes, 44);
  EXPECT_EQ(config.vit.global_pool, GlobalPool::avg) << "timm_pool is avg by default";
  EXPECT_EQ(config.vit.head_hidden, 0);
  EXPECT_EQ(config.key_map, "");
  const Config mlp = timm(R"("timm_proj": "mlp", "timm_pool": "token")").vit;
  EXPECT_EQ(mlp.head_hidden, 88);
  EXPECT_EQ(mlp.head_act, "gelu");
  EXPECT_EQ(mlp.global_pool, GlobalPool::token);
  EXPECT_EQ(mlp.head_bias, false);
  EXPECT_TRUE(mlp.projection_head);
  EXPECT_EQ(timm(R"("timm_proj": "linear", "timm_proj_bias": true)").vit.head_bias, true);
  const Config none = timm(R"("timm_proj": "none")").vit;
  EXPECT_EQ(none.num_classes, 0);
  EXPECT_FALSE(none.projection_head);
  const Config own = timm(R"("timm_proj": "", "timm_pool": "map")").vit;
  EXPECT_EQ(own.global_pool, GlobalPool::map);
  EXPECT_EQ(own.head_bias, true);
  EXPECT_TRUE(own.projection_head);
  EXPECT_EQ(own.num_classes, 44);
  // A pooling behind a model with a norm behind its own pooling keeps it.
  const auto norm_of = [](const std::string& name) {
    return open_clip(str(R"("timm_model_name": ")", name, R"(", "timm_pool": "avg")")).vit.fc_norm;
  };
  EXPECT_EQ(norm_of("vit_base_patch16_224"), false);
  EXPECT_EQ(norm_of("vit_base_patch16_reg4_gap_256"), true);
  EXPECT_ERROR(error_of([&] { timm(R"("timm_proj": "conv")"); }), "file: model_cfg: vision_cfg: timm_proj", "\"conv\"");
  EXPECT_ERROR(error_of([&] { timm(R"("timm_pool": "map")"); }), "file: model_cfg: vision_cfg: timm_pool", "\"map\"");
  EXPECT_ERROR(error_of([&] { timm(R"("timm_pool": "rot")"); }), "file: model_cfg: vision_cfg: timm_pool", "\"rot\"");
  EXPECT_ERROR(error_of([&] { timm(R"("image_size": [224, 384])"); }), "file: model_cfg: vision_cfg: image_size",
               "224×384");
}

TEST(OpenClipConfig, NeedsBothTowersAndKnownModes) {
  const auto error = [](const std::string& json) { return error_of([&] { parse_model_config(json, "", "file"); }); };
  EXPECT_ERROR(error(R"({"model_cfg": {"text_cfg": {}}})"), "file: model_cfg: vision_cfg", "none");
  EXPECT_ERROR(error(R"({"model_cfg": {"vision_cfg": {}}})"), "file: model_cfg: text_cfg", "none");
  EXPECT_ERROR(error_of([] { open_clip("", "", "", R"("resize_mode": "stretch")"); }),
               "file: preprocess_cfg: resize_mode", "\"stretch\"");
  EXPECT_EQ(open_clip("", "", "", R"("resize_mode": "longest")").preprocessing.crop_mode, "border");
  EXPECT_EQ(open_clip("").preprocessing.rule, ResizeRule::timm);
}

// open_clip/transform.py: CenterCropOrPad(image_size, fill=fill_color), whose default is 0.
TEST(OpenClipConfig, ThePaddingHasItsOwnColour) {
  const auto fill_color = [](const std::string& fields) {
    return open_clip("", "", "", fields).preprocessing.fill_color;
  };
  EXPECT_EQ(fill_color(R"("resize_mode": "longest")"), 0);
  EXPECT_EQ(fill_color(R"("resize_mode": "longest", "fill_color": 255)"), 255);
  EXPECT_EQ(fill_color(R"("fill_color": 255)"), std::nullopt) << "only this mode pads";
  EXPECT_ERROR(error_of([&] { fill_color(R"("resize_mode": "longest", "fill_color": 256)"); }), "file: fill_color",
               "256");
  const ModelConfig config = open_clip("", "", "", R"("resize_mode": "longest", "fill_color": 9)");
  const ModelConfig again = parse_model_config(write_model_config(config), "", "file");
  EXPECT_EQ(again.preprocessing.crop_mode, "border");
  EXPECT_EQ(again.preprocessing.fill_color, 9);
}

// Products that would overflow.
TEST(OpenClipConfig, WidthsHaveLimits) {
  for (const char* value : {"0", "1048577", "9223372036854775807"}) {
    EXPECT_EQ(error_of([&] { open_clip("", "", str("\"embed_dim\": ", value, ", ")); }),
              str("file: model_cfg: embed_dim: expected 1 to 1048576, got ", value));
  }
  for (const char* tower : {"vision_cfg", "text_cfg"}) {
    const bool vision = std::string(tower) == "vision_cfg";
    const std::string error =
        error_of([&] { open_clip(vision ? R"("mlp_ratio": 1e308)" : "", vision ? "" : R"("mlp_ratio": 1e308)"); });
    EXPECT_TRUE(error.starts_with(str("file: model_cfg: ", tower, ": mlp_ratio: expected a hidden width"))) << error;
  }
}

}  // namespace
}  // namespace vitrail::models
