// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/model_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/models/vision_transformer.h"

namespace vitrail::models {
namespace {

ModelConfig parse(const std::string& json, const std::string& preprocessor = "") {
  return parse_model_config(json, preprocessor, "config.json");
}

std::string parse_error(const std::string& json, const std::string& preprocessor = "") {
  try {
    parse(json, preprocessor);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_error(const std::string& json, const std::string& part) {
  EXPECT_NE(parse_error(json).find(part), std::string::npos) << json << "\n" << parse_error(json);
}

TEST(Config, ErrorsNameThePathOfTheField) {
  expect_error("", "JSON");
  expect_error("[1]", "a JSON object");
  expect_error("{}", "\"architecture\" (timm), \"model_type\" (Hugging Face) or \"model_cfg\" (OpenCLIP)");
  expect_error(R"({"architecture": "vit_bse_patch16_224"})", "vit_base_patch16_224");
  expect_error(R"({"architecture": "vit", "model_args": {"dept": 1}})",
               "config.json: model_args: dept: expected one of the fields img_size ");
  expect_error(R"({"architecture": "vit", "model_args": {"dept": 1}})", "got an unknown field; did you mean depth?");
  expect_error(R"({"architecture": "vit", "model_args": {"depth": "12"}})",
               "config.json: model_args: depth: expected an integer");
  expect_error(R"({"architecture": "vit", "model_args": {"depth": 1.5}})", "an integer, got 1.5");
  expect_error(R"({"architecture": "vit", "model_args": {"depth": -1}})", "depth");
  expect_error(R"({"architecture": "vit", "model_args": {"depth": 99999999999999999999}})", "depth");
  expect_error(R"({"architecture": "vit", "model_args": {"qkv_bias": 1}})", "true or false");
  expect_error(R"({"architecture": "vit", "model_args": {"act_layer": "mish"}})", "\"gelu_tanh\"");
  expect_error(R"({"architecture": "vit", "model_args": {"pos_interp": {"bicubic": true}}})",
               "model_args: pos_interp.bicubic: expected one of the fields antialias offset bilinear");
  expect_error(R"({"architecture": "vit", "model_args": {"class_token": false}})", "global_pool");
  expect_error(R"({"architecture": "vit", "label_names": ["a", "b"]})", "1000 label names");
  expect_error(R"({"model_type": "bert"})", "vit, vit_mae, vit_msn, ijepa, deit, dinov2");
  expect_error(R"({"model_type": "vit", "hidden_act": "mish"})", "hidden_act");
  expect_error(std::string(100000, '['), "nesting");
}

// transformers' ACT2FN; gelu_fast and gelu_new are the tanh approximation.
TEST(Config, HuggingFacesActivationsAreRead) {
  using kernels::Activation;
  const std::pair<const char*, Activation> names[] = {
      {"gelu", Activation::gelu},           {"gelu_new", Activation::gelu_tanh},
      {"gelu_fast", Activation::gelu_tanh}, {"gelu_pytorch_tanh", Activation::gelu_tanh},
      {"relu", Activation::relu},           {"quick_gelu", Activation::quick_gelu},
      {"silu", Activation::silu},           {"swish", Activation::silu}};
  for (const auto& [name, activation] : names) {
    const ModelConfig config = parse(R"({"model_type": "vit", "hidden_act": ")" + std::string(name) + "\"}");
    EXPECT_EQ(config.vit.act_layer, activation) << name;
  }
  EXPECT_EQ(parse(R"({"model_type": "vit"})").vit.act_layer, Activation::gelu);
}

// transformers' defaults for fields that a file leaves out.
TEST(Config, HuggingFacesDefaultsAreTransformers) {
  EXPECT_EQ(parse(R"({"model_type": "vit"})").vit.norm_eps, 1e-12);
  EXPECT_EQ(parse(R"({"model_type": "dinov2"})").vit.norm_eps, 1e-6);
  const Preprocessing defaults = parse(R"({"model_type": "vit"})", "{}").preprocessing;
  EXPECT_EQ(defaults.interpolation, "bilinear");
  EXPECT_EQ(defaults.rescale_factor, 1.0 / 255);
  const Preprocessing raw =
      parse(R"({"model_type": "vit"})",
            R"({"do_normalize": false, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
                                      "rescale_factor": 0.001})")
          .preprocessing;
  EXPECT_EQ(raw.mean, (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(raw.std, (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(raw.rescale_factor, 0.001);
}

TEST(Config, PretrainedCfgOverridesTheFilesOwnPreprocessing) {
  const Preprocessing read = parse(R"({"architecture": "vit", "crop_pct": 0.5, "interpolation": "box",
                                       "pretrained_cfg": {"crop_pct": 0.75}})")
                                 .preprocessing;
  EXPECT_EQ(read.crop_pct, 0.75);
  EXPECT_EQ(read.interpolation, "box");
}

TEST(Config, UnknownKeysOutsideModelArgsAreIgnored) {
  EXPECT_NO_THROW(parse(R"({"architecture": "vit", "some_tool": {"x": 1}, "pretrained_cfg": {"y": 2}})"));
}

TEST(Config, TimmsSettingsAreRead) {
  const ModelConfig config = parse(R"({"architecture": "deit_tiny_patch16_224", "num_classes": 3, "global_pool": "avg",
      "label_names": ["a", "b", "c"], "label_descriptions": {"a": "an a", "c": "a c"},
      "pretrained_cfg": {"input_size": [3, 192, 160], "interpolation": "bicubic", "crop_pct": 0.9, "crop_mode": "border",
                         "mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25]}})");
  EXPECT_EQ(config.vit.embed_dim, 192);
  EXPECT_EQ(config.vit.num_classes, 3);
  EXPECT_EQ(config.vit.global_pool, GlobalPool::avg);
  EXPECT_EQ(*config.preprocessing.input_size, (std::array<int64_t, 2>{192, 160}));
  EXPECT_EQ(config.preprocessing.crop_mode, "border");
  EXPECT_EQ(config.descriptions, (std::vector<std::string>{"an a", "b", "a c"}));
  EXPECT_TRUE(config.preprocessing.missing().empty());
}

// timm writes whatever arguments create_model() got.
TEST(Config, ArgumentsOfTimmThatAreNotSupportedMayHaveTheirDefaults) {
  parse(R"({"architecture": "vit_tiny_patch16_224",
            "model_args": {"proj_bias": true, "pool_include_prefix": false, "dynamic_img_pad": false,
                           "scale_attn_norm": false, "norm_layer": null}})");
  expect_error(R"({"architecture": "vit_tiny_patch16_224", "model_args": {"fix_init": true}})",
               "config.json: model_args: fix_init: expected false");
  expect_error(R"({"architecture": "vit_tiny_patch16_224", "model_args": {"embed_norm_layer": "rmsnorm"}})",
               "model_args: embed_norm_layer: expected null");
}

// Prov-GigaPath's arguments.  timm's mlp_ratio of SwiGLUPacked counts both halves of fc1.
TEST(Config, TimmsMlpRatioOfPackedSwigluIsTheWidthOfFc1) {
  const std::string args = R"({"img_size": 28, "embed_dim": 96, "depth": 1, "num_heads": 3, "mlp_ratio": 5.33334)";
  for (const std::string architecture : {R"("vit_giant_patch14_dinov2")", R"("vit", "vitrail_args": {"patch_size": 14,
                                            "mlp_layer": "swiglu_packed"})"}) {
    const ModelConfig config = parse(R"({"architecture": )" + architecture + R"(, "model_args": )" + args + "}}");
    RandomParams meta(0, DType::f32, Device::meta);
    const VisionTransformer model(config.vit, ParamSource(meta));
    EXPECT_EQ(model.parameter("blocks.0.mlp.fc1.weight").shape(), (Shape{512, 96}));
    EXPECT_EQ(model.parameter("blocks.0.mlp.fc2.weight").shape(), (Shape{96, 256}));
    EXPECT_EQ(parse(write_model_config(config)).vit.mlp_ratio, 5.33334);
  }
}

TEST(Config, MissingPreprocessingIsNamedByItsOption) {
  const Preprocessing none = parse(R"({"architecture": "vit"})").preprocessing;
  EXPECT_EQ(none.missing(),
            (std::vector<std::string>{"--mean", "--std", "--interpolation", "--crop-pct", "--image-size"}));
  Preprocessing preset = none;
  apply_preset("imagenet", preset);
  EXPECT_EQ(preset.missing(), (std::vector<std::string>{"--image-size"}));
  EXPECT_THROW(apply_preset("imagnet", preset), Error);
}

TEST(Config, SigmoidIsForSeveralLabelsAndForOneClass) {
  const auto sigmoid = [](const std::string& fields) {
    const ModelConfig config =
        parse(R"({"model_type": "vit", "architectures": ["ViTForImageClassification"])" + fields + "}");
    const std::string written = write_model_config(config);
    EXPECT_EQ(gives_sigmoid(parse(written)), gives_sigmoid(config)) << written;
    return gives_sigmoid(config);
  };
  EXPECT_FALSE(sigmoid(""));
  EXPECT_FALSE(sigmoid(R"(, "problem_type": null)"));
  EXPECT_FALSE(sigmoid(R"(, "problem_type": "single_label_classification", "id2label": {"0": "a", "1": "b"})"));
  EXPECT_TRUE(sigmoid(R"(, "problem_type": "multi_label_classification", "id2label": {"0": "a", "1": "b"})"));
  EXPECT_TRUE(sigmoid(R"(, "id2label": {"0": "defect"})"));
  EXPECT_TRUE(gives_sigmoid(parse(R"({"architecture": "vit", "problem_type": "multi_label_classification"})")));
  const testing::Warnings warnings;
  parse(R"({"model_type": "vit", "problem_type": "regression"})");
  ASSERT_EQ(warnings.messages.size(), 1u);
  EXPECT_NE(warnings.messages[0].find("problem_type: \"regression\""), std::string::npos) << warnings.messages[0];
}

TEST(Config, RoundTrip) {
  for (
      const std::string json :
      {R"({"architecture": "vit_small_patch16_224", "num_classes": 7, "model_args": {"img_size": [96, 64], "init_values": 0.1}})",
       R"({"architecture": "vit", "model_args": {"norm_first": false, "embed_dim": 48, "num_heads": 4, "patch_norm": "both",
            "pos_embed": "sinusoidal", "head_hidden": 20, "head_act": "relu", "qk_scale": 0.3, "mlp_hidden": 50}})",
       R"({"model_type": "dinov2_with_registers", "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4,
            "image_size": 28, "patch_size": 14, "num_register_tokens": 2})",
       R"({"model_type": "deit", "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 100})"}) {
    const std::string once = write_model_config(parse(json));
    EXPECT_EQ(write_model_config(parse(once)), once) << json;
    EXPECT_EQ(parse(once).vit.norm_eps, parse(json).vit.norm_eps) << once;
    EXPECT_EQ(parse(once).vit.pos_interp.antialias, parse(json).vit.pos_interp.antialias) << once;
    EXPECT_EQ(parse(once).vit.reg_tokens, parse(json).vit.reg_tokens) << once;
    EXPECT_EQ(parse(once).vit.init_values, parse(json).vit.init_values) << once;
  }
}

// Several architectures have the same fields; a model keeps the name that it was read with.
TEST(Config, TheNameOfAnArchitectureIsKeptAmongItsTwins) {
  for (const std::string name : {"vit_base_patch16_224", "deit_base_patch16_224", "vit_small_patch16_224",
                                 "deit_small_patch16_224", "vit_tiny_patch16_224", "deit_tiny_patch16_224"}) {
    for (const std::string tag : {"", ".fb_in1k"}) {
      const ModelConfig config = parse(R"({"architecture": ")" + name + tag + "\"}");
      EXPECT_EQ(nlohmann::json::parse(write_model_config(config))["architecture"], name) << tag;
    }
  }
}

TEST(Config, ExcludedLayersAreReadUnderBothNames) {
  const std::vector<std::string> layers{"blocks.0.mlp.fc2", "blocks.1.attn.qkv"};
  for (const std::string key : {"excluded", "kept"}) {
    const ModelConfig config = parse(R"({"architecture": "vit_small_patch16_224", "int8": {")" + key +
                                     R"(": ["blocks.0.mlp.fc2", "blocks.1.attn.qkv"]}})");
    ASSERT_TRUE(config.int8) << key;
    EXPECT_EQ(config.int8->excluded, layers) << key;
    const auto written = nlohmann::json::parse(write_model_config(config));
    EXPECT_EQ(written["int8"], nlohmann::json({{"excluded", layers}})) << key;
  }
  expect_error(R"({"architecture": "vit", "int8": {"excluded": 3}})", "int8: excluded");
  EXPECT_FALSE(parse(R"({"architecture": "vit"})").int8);
}

// timm reads only model_args, so global_pool must be there.
TEST(Config, GlobalPoolIsWrittenToModelArgs) {
  const auto json = nlohmann::json::parse(write_model_config(parse(
      R"({"architecture": "vit_small_patch16_224", "model_args": {"class_token": false, "global_pool": "avg"}})")));
  EXPECT_EQ(json["model_args"]["global_pool"], "avg");
  EXPECT_EQ(json["model_args"]["class_token"], false);
}

Preprocessing processor(const std::string& fields) {
  return parse(R"({"model_type": "vit", "image_size": 64})", "{" + fields + "}").preprocessing;
}

// 2 in an old file of CLIP means the largest id; for MetaCLIP 2 it is the id of the end-of-text token.
TEST(ClipConfig, TheEndOfATextIsTheFamilys) {
  const auto pool_of = [](const std::string& type, const std::string& id) {
    return parse(R"({"model_type": ")" + type + R"(", "text_config": {"eos_token_id": )" + id + "}}").text->pool;
  };
  EXPECT_EQ(pool_of("clip", "2"), TextPool::largest_id);
  EXPECT_EQ(pool_of("clip", "49407"), TextPool::first_eos);
  EXPECT_EQ(pool_of("metaclip_2", "2"), TextPool::first_eos);
}

// An OpenCLIP file with the fields of vision_cfg.
std::string open_clip_file(const std::string& vision, const std::string& text = "") {
  return R"({"model_cfg": {"embed_dim": 512, "vision_cfg": {)" + vision + R"(}, "text_cfg": {)" + text +
         R"(}}, "preprocess_cfg": {"resize_mode": "squash"}})";
}

TEST(Config, OpenClipsTowersOfTimmHaveTheirPoolingAndProjection) {
  const ModelConfig gap =
      parse(open_clip_file(R"("timm_model_name": "vit_medium_patch16_gap_256", "timm_pool": "", "image_size": 256)"));
  EXPECT_EQ(gap.vit.global_pool, GlobalPool::avg);
  EXPECT_EQ(gap.vit.fc_norm, false);
  EXPECT_EQ(gap.vit.num_classes, 512);
  EXPECT_TRUE(gap.vit.projection_head);  // timm_proj is linear by default
  EXPECT_EQ(gap.vit.head_bias, false);
  EXPECT_EQ(gap.preprocessing.input_size, (std::array<int64_t, 2>{256, 256}));
  const ModelConfig clip = parse(
      open_clip_file(R"("timm_model_name": "vit_large_patch14_clip_224", "timm_pool": "token", "timm_proj": null)"));
  EXPECT_TRUE(clip.vit.projection_head);
  EXPECT_EQ(clip.vit.head_bias, true);  // timm's own head
  EXPECT_EQ(clip.vit.act_layer, kernels::Activation::gelu);
  // The pooling of a model whose norm is before it: replaced behind the model, or as the model's argument.
  const auto norm_is_behind_the_pooling = [](const std::string& proj) {
    return parse(open_clip_file(R"("timm_model_name": "vit_base_patch16_224", "timm_proj": )" + proj)).vit.fc_norm;
  };
  EXPECT_EQ(norm_is_behind_the_pooling(R"("linear")"), false);
  EXPECT_EQ(norm_is_behind_the_pooling("null"), std::nullopt);
}

TEST(Config, NamesWhatIsUnsupportedInOpenClipsFiles) {
  const auto refuses = [](const std::string& vision, const std::string& part) {
    expect_error(open_clip_file(vision), part);
  };
  refuses(R"("timm_model_name": "convnext_base")", "timm_model_name: expected");
  refuses(R"("timm_model_name": "vit_base_patch16_224", "timm_pool": "abs_attn")", "timm_pool: expected one of");
  refuses(R"("timm_model_name": "vit_base_patch16_224", "timm_pool": "map")", "without attention pooling");
  refuses(R"("timm_model_name": "vit_base_patch16_224", "timm_proj": "conv")", "timm_proj: expected one of");
  refuses(R"("timm_model_name": "vit_base_patch16_224", "image_size": 384)",
          "image_size: expected 224×224, as the architecture's, got 384×384");
  refuses(R"("layers": [3, 4, 6, 3])",
          "layers: expected the depth of a Vision Transformer, got the stages of a ResNet");
  refuses(R"("attentional_pool": "parallel")", "attentional_pool: expected true");
  refuses(R"("act_kwargs": {"approximate": "erf"})", "act_kwargs: approximate: expected one of");
}

TEST(Config, CoCaIsADualModelWhoseTextDecoderIsLeftOut) {
  const ModelConfig config = parse(R"({"model_cfg": {"embed_dim": 96, "multimodal_cfg": {"layers": 12},
      "vision_cfg": {"attentional_pool": true, "attn_pooler_heads": 4}, "text_cfg": {"embed_cls": true}}})");
  EXPECT_EQ(config.vit.global_pool, GlobalPool::map);
  EXPECT_EQ(config.vit.attn_pool_dim, 96);
  EXPECT_EQ(config.vit.attn_pool_num_heads, 4);
  EXPECT_TRUE(config.text->class_token);
}

TEST(Config, AnOpenClipModelWithATextTowerOfTransformersIsAnImageTower) {
  const ModelConfig config = parse(open_clip_file("", R"("hf_model_name": "roberta-base")"));
  EXPECT_FALSE(config.text);
  EXPECT_EQ(config.vit.num_classes, 512);
  EXPECT_TRUE(parse(open_clip_file("")).text);
}

TEST(Config, FieldsOfOpenClipsFilesAreRead) {
  const auto with = [](const std::string& preprocessing) {
    return parse(R"({"model_cfg": {"embed_dim": 8, "vision_cfg": {}, "text_cfg": {}}, "preprocess_cfg": {)" +
                 preprocessing + "}}")
        .preprocessing;
  };
  EXPECT_EQ(with("").crop_mode, "center");
  for (const auto& [mode, crop_mode] :
       {std::pair("shortest", "center"), std::pair("squash", "squash"), std::pair("longest", "border")}) {
    EXPECT_EQ(with(str(R"("resize_mode": ")", mode, "\"")).crop_mode, crop_mode) << mode;
  }
  EXPECT_EQ(with("").interpolation, "bicubic");
  EXPECT_EQ(with(R"("interpolation": "random")").interpolation, "bicubic");
  EXPECT_EQ(with(R"("interpolation": "bilinear")").interpolation, "bilinear");
  EXPECT_EQ(with("").crop_pct, 1);
  EXPECT_EQ(with("").mean, (std::vector<double>{0.48145466, 0.4578275, 0.40821073}));
  EXPECT_EQ(with("").std, (std::vector<double>{0.26862954, 0.26130258, 0.27577711}));
  EXPECT_EQ(with(R"("mean": [0.1, 0.2, 0.3])").mean, (std::vector<double>{0.1, 0.2, 0.3}));
  EXPECT_EQ(with(R"("std": [0.1, 0.2, 0.3])").std, (std::vector<double>{0.1, 0.2, 0.3}));
}

TEST(Config, FieldsOfOpenClipsTextsAreRead) {
  const auto text = [](const std::string& fields) { return *parse(open_clip_file("", fields)).text; };
  EXPECT_EQ(text("").pool, TextPool::largest_id);
  for (const auto& [name, pool] : {std::pair("argmax", TextPool::largest_id), std::pair("eos", TextPool::first_eos),
                                   std::pair("last", TextPool::last)}) {
    EXPECT_EQ(text(str(R"("pool_type": ")", name, "\"")).pool, pool) << name;
  }
  EXPECT_EQ(text(R"("embed_cls": true)").pool, TextPool::last) << "the class token is the last";
  EXPECT_EQ(text(R"("embed_cls": true, "pool_type": "eos")").pool, TextPool::last);
  EXPECT_TRUE(text("").causal);
  EXPECT_FALSE(text(R"("no_causal_mask": true)").causal);
  EXPECT_FALSE(text("").projection_bias);
  EXPECT_TRUE(text(R"("proj_bias": true)").projection_bias);
  EXPECT_EQ(text("").pad_token_id, 0);
  EXPECT_EQ(text(R"("pad_id": 3)").pad_token_id, 3);
  EXPECT_EQ(text("").eos_token_id, 2);
  EXPECT_EQ(text(R"("eos_id": 5)").eos_token_id, 5);
  EXPECT_EQ(text(R"("layers": 4)").depth, 4);
  EXPECT_EQ(text(R"("heads": 2)").num_heads, 2);
  EXPECT_EQ(text(R"("width": 96)").embed_dim, 96);
  EXPECT_EQ(text(R"("context_length": 33)").context_length, 33);
  EXPECT_EQ(text(R"("vocab_size": 99)").vocab_size, 99);
  EXPECT_EQ(text("").cleaning, TextCleaning::lower);
  EXPECT_TRUE(text("").simple_tokenizer);
  EXPECT_EQ(text(R"("hf_tokenizer_name": "timm/ViT-B-16-SigLIP")").cleaning, TextCleaning::whitespace);
  EXPECT_FALSE(text(R"("hf_tokenizer_name": "timm/ViT-B-16-SigLIP")").simple_tokenizer);
  EXPECT_EQ(text("").output_dim, 512);
}

// Every setting of the interpolation of positions, also when it is written and read again.
TEST(Config, TheInterpolationOfPositionsIsRead) {
  const auto read = [](const std::string& fields) {
    const ModelConfig config = parse(R"({"architecture": "vit", "model_args": {"pos_interp": {)" + fields + "}}}");
    const auto again = parse(write_model_config(config)).vit.pos_interp;
    EXPECT_EQ(again.antialias, config.vit.pos_interp.antialias) << fields;
    EXPECT_EQ(again.offset, config.vit.pos_interp.offset) << fields;
    return config.vit.pos_interp;
  };
  EXPECT_EQ(read("").offset, VisionTransformerConfig().pos_interp.offset);
  EXPECT_EQ(read(R"("offset": 0.25)").offset, 0.25);
  EXPECT_TRUE(read(R"("antialias": true)").antialias);
  EXPECT_FALSE(read(R"("antialias": false)").antialias);
}

// timm's post-norm blocks have no LayerScale: the norms' weights are in its place.
TEST(Config, PostNormBlocksHaveNoLayerScale) {
  RandomParams shapes(0, DType::f32, Device::meta);
  const ModelConfig config = parse(
      R"({"architecture": "vit", "model_args": {"embed_dim": 12, "depth": 1, "num_heads": 3, "use_post_norm": true,
          "init_values": 1e-5}})");
  VisionTransformer model(config.vit, ParamSource(shapes));
  for (const nn::NamedTensor& p : model.named_parameters()) EXPECT_EQ(p.name.find("ls1"), p.name.npos) << p.name;
}

TEST(Config, ATagWithIn1kSaysThatTheClassesAreImageNets) {
  const auto classes = [](const std::string& json) { return has_imagenet_classes(parse(json)); };
  EXPECT_TRUE(classes(R"({"architecture": "vit_tiny_patch16_224.augreg_in21k_ft_in1k"})"));
  EXPECT_TRUE(classes(R"({"architecture": "vit_tiny_patch16_224", "pretrained_cfg": {"tag": "fb_in1k"}})"));
  EXPECT_FALSE(classes(R"({"architecture": "vit_tiny_patch16_224"})"));
  for (const char* tag : {"mine", "in1krounded", "xin1k", "in12k", "augreg_in21k"}) {
    EXPECT_FALSE(classes(str(R"({"architecture": "vit_tiny_patch16_224.)", tag, "\"}"))) << tag;
  }
  for (const char* tag : {"in1k", "in1k_384", "a_in1k_b"}) {
    EXPECT_TRUE(classes(str(R"({"architecture": "vit_tiny_patch16_224.)", tag, "\"}"))) << tag;
  }
  EXPECT_FALSE(classes(R"({"architecture": "vit_tiny_patch16_224.fb_in1k", "num_classes": 10})"));
  const ModelConfig config = parse(R"({"architecture": "vit_tiny_patch16_224.fb_in1k"})");
  EXPECT_TRUE(classes(write_model_config(config)));
}

// The class attributes in transformers 5.24's image_processing_pil_*.py.
TEST(Config, AbsentFieldsOfAProcessorHaveTheDefaultsOfItsClass) {
  using Size = std::optional<std::array<int64_t, 2>>;
  const Preprocessing vit = processor(R"("image_processor_type": "ViTImageProcessor")");
  EXPECT_EQ(vit.interpolation, "bilinear");
  EXPECT_EQ(vit.resize_to, (Size{{224, 224}}));
  EXPECT_EQ(vit.center_crop, Size{});
  EXPECT_EQ(vit.mean, (std::vector<double>{0.5, 0.5, 0.5}));
  const Preprocessing deit = processor(R"("feature_extractor_type": "DeiTFeatureExtractor")");
  EXPECT_EQ(deit.interpolation, "bicubic");
  EXPECT_EQ(deit.resize_to, (Size{{256, 256}}));
  EXPECT_EQ(deit.center_crop, (Size{{224, 224}}));
  const Preprocessing beit = processor(R"("image_processor_type": "BeitImageProcessorFast", "crop_size": 224)");
  EXPECT_EQ(beit.interpolation, "bicubic");
  EXPECT_EQ(beit.center_crop, Size{});
  const Preprocessing bit = processor(R"("image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 256})");
  EXPECT_EQ(bit.interpolation, "bicubic");
  EXPECT_EQ(bit.resize_shortest, 256);
  EXPECT_EQ(bit.center_crop, (Size{{224, 224}}));
  EXPECT_EQ(bit.std, (std::vector<double>{0.26862954, 0.26130258, 0.27577711}));
  EXPECT_NE(parse_error(R"({"model_type": "vit"})", R"({"image_processor_type": "Owlv2ImageProcessor"})")
                .find("image_processor_type: expected one of ViTImageProcessor"),
            std::string::npos);
}

// openai/clip-vit-base-patch32 has "size": 224, "crop_size": 224.
TEST(Config, AnIntegerSizeIsTheShortestEdgeWhereItsProcessorSaysSo) {
  const std::string sizes = R"(, "size": 224, "crop_size": 224)";
  const Preprocessing clip = processor(R"("feature_extractor_type": "CLIPFeatureExtractor")" + sizes);
  EXPECT_EQ(clip.resize_shortest, 224);
  EXPECT_FALSE(clip.resize_to);
  EXPECT_EQ(clip.center_crop, (std::array<int64_t, 2>{224, 224}));
  const Preprocessing vit = processor(R"("feature_extractor_type": "ViTFeatureExtractor")" + sizes);
  EXPECT_FALSE(vit.resize_shortest);
  EXPECT_EQ(vit.resize_to, (std::array<int64_t, 2>{224, 224}));
  EXPECT_FALSE(vit.center_crop);
}

TEST(Config, ConvNextsProcessorCropsSmallImagesAndSquashesLargeOnes) {
  const std::string type = R"("image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": )";
  const Preprocessing small = processor(type + R"(64}, "crop_pct": 0.73)");
  EXPECT_EQ(small.resize_shortest, 87);  // int(64 / 0.73)
  EXPECT_EQ(small.center_crop, (std::array<int64_t, 2>{64, 64}));
  EXPECT_EQ(small.input_size, (std::array<int64_t, 2>{64, 64}));
  EXPECT_EQ(processor(type + "224}").resize_shortest, 256);
  const Preprocessing large = processor(type + "384}");
  EXPECT_EQ(large.resize_to, (std::array<int64_t, 2>{384, 384}));
  EXPECT_FALSE(large.center_crop);
}

TEST(Config, HuggingFaceProcessorsKeepTheirSteps) {
  const std::string vit =
      R"({"model_type": "vit", "architectures": ["ViTForImageClassification"], "id2label": {"1": "b", "0": "a"}})";
  const ModelConfig fixed =
      parse(vit, R"({"size": {"height": 200, "width": 180}, "resample": 3, "image_mean": [0.5], "image_std": [0.5]})");
  EXPECT_EQ(fixed.labels, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(*fixed.preprocessing.resize_to, (std::array<int64_t, 2>{200, 180}));
  EXPECT_EQ(*fixed.preprocessing.interpolation, "bicubic");
  const ModelConfig crop =
      parse(vit, R"({"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}, "resample": 2,
      "do_center_crop": true, "image_mean": [0.5], "image_std": [0.5]})");
  EXPECT_EQ(*crop.preprocessing.resize_shortest, 256);
  EXPECT_EQ(*crop.preprocessing.input_size, (std::array<int64_t, 2>{224, 224}));
  EXPECT_EQ(write_preprocessor_config(parse(vit, write_preprocessor_config(crop.preprocessing)).preprocessing),
            write_preprocessor_config(crop.preprocessing));
}

TEST(Config, AProcessorIsWrittenWithAllItsSteps) {
  const std::string vit = R"({"model_type": "vit", "image_size": 64})";
  for (const char* fields :
       {R"({"do_rescale": false, "image_mean": [123, 116, 103], "image_std": [58, 57, 57], "size": 64})",
        R"({"rescale_factor": 0.001, "image_mean": [0.1, 0.1, 0.1], "image_std": [0.2, 0.2, 0.2], "size": 64})",
        R"({"do_resize": false, "image_mean": [0.1], "image_std": [0.2], "resample": 0})",
        R"({"do_normalize": false, "size": {"height": 60, "width": 70}, "crop_size": {"height": 50, "width": 40},
               "do_center_crop": true, "resample": 4})",
        R"({"image_processor_type": "DINOv3ViTImageProcessor", "size": {"height": 60, "width": 70}})"}) {
    const Preprocessing want = parse(vit, fields).preprocessing;
    const Preprocessing got = parse(vit, write_preprocessor_config(want)).preprocessing;
    EXPECT_EQ(got.rescale_factor, want.rescale_factor) << fields;
    EXPECT_EQ(got.mean, want.mean) << fields;
    EXPECT_EQ(got.std, want.std) << fields;
    EXPECT_EQ(got.interpolation, want.interpolation) << fields;
    EXPECT_EQ(got.resize_to, want.resize_to) << fields;
    EXPECT_EQ(got.resize_shortest, want.resize_shortest) << fields;
    EXPECT_EQ(got.center_crop, want.center_crop) << fields;
    EXPECT_EQ(got.resize_floats, want.resize_floats) << fields;
    EXPECT_EQ(got.input_size, want.input_size) << fields;
  }
  EXPECT_EQ(write_preprocessor_config({}), "");  // timm has them in config.json
}

TEST(Config, TimmsPreprocessingTagAndNamesAreWrittenAgain) {
  const char* const text = R"({"architecture": "vit_tiny_patch16_224.tag_of_name", "num_classes": 2,
      "label_names": ["n1", "n2"], "label_descriptions": {"n2": "dog"}, "problem_type": "multi_label_classification",
      "pretrained_cfg": {"input_size": [3, 64, 96], "interpolation": "box", "crop_pct": 0.5, "crop_mode": "squash",
                         "mean": [0.1, 0.2, 0.3], "std": [0.4, 0.5, 0.6]}})";
  for (const ModelConfig& config : {parse(text), parse(write_model_config(parse(text)))}) {
    EXPECT_EQ(config.tag, "tag_of_name");
    EXPECT_EQ(config.labels, (std::vector<std::string>{"n1", "n2"}));
    EXPECT_EQ(config.descriptions, (std::vector<std::string>{"n1", "dog"}));
    EXPECT_EQ(config.problem_type, ProblemType::multi_label);
    EXPECT_EQ(config.preprocessing.input_size, (std::array<int64_t, 2>{64, 96}));
    EXPECT_EQ(config.preprocessing.interpolation, "box");
    EXPECT_EQ(config.preprocessing.crop_pct, 0.5);
    EXPECT_EQ(config.preprocessing.crop_mode, "squash");
    EXPECT_EQ(config.preprocessing.mean, (std::vector<double>{0.1, 0.2, 0.3}));
    EXPECT_EQ(config.preprocessing.std, (std::vector<double>{0.4, 0.5, 0.6}));
  }
}

TEST(Config, AFilesTagPrecedesThatOfItsPretrainedCfgAndOfItsName) {
  const std::string name = R"("architecture": "vit_tiny_patch16_224.a")";
  EXPECT_EQ(parse("{" + name + "}").tag, "a");
  EXPECT_EQ(parse("{" + name + R"(, "pretrained_cfg": {"tag": "b"}})").tag, "b");
  EXPECT_EQ(parse("{" + name + R"(, "pretrained_cfg": {"tag": "b"}, "tag": "c"})").tag, "c");
  EXPECT_EQ(parse(R"({"architecture": "vit_tiny_patch16_224"})").tag, "");
}

// PretrainedConfig of transformers has two labels.
TEST(Config, TheNumberOfClassesIsThatOfTheLabels) {
  const auto classes = [](const std::string& fields) {
    return parse(R"({"model_type": "vit", "architectures": ["ViTForImageClassification"])" + fields + "}")
        .vit.num_classes;
  };
  EXPECT_EQ(classes(""), 2);
  EXPECT_EQ(classes(R"(, "num_labels": 7)"), 7);
  EXPECT_EQ(classes(R"(, "id2label": {"0": "a", "1": "b", "2": "c"}, "num_labels": 7)"), 3);
  EXPECT_EQ(parse(R"({"model_type": "vit", "architectures": ["ViTModel"], "num_labels": 7})").vit.num_classes, 0);
  for (const char* map :
       {R"({"1": "a"})", R"({"0": 1})", R"({"x": "a"})", R"({"0": "a", "2": "b"})", R"({"0": "a", "00": "b"})"}) {
    EXPECT_NE(parse_error(R"({"model_type": "vit", "architectures": ["ViTForImageClassification"], "id2label": )" +
                          std::string(map) + "}")
                  .find("id2label: expected class indices 0 to "),
              std::string::npos)
        << map;
  }
}

TEST(Config, ConvNextsEdgeOf384IsSquashedAndOneBelowCropped) {
  const std::string type = R"("image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": )";
  EXPECT_EQ(processor(type + "383}").center_crop, (std::array<int64_t, 2>{383, 383}));
  EXPECT_EQ(processor(type + "383}").resize_shortest, 437);  // int(383 / (224 / 256))
  EXPECT_EQ(processor(type + "384}").resize_to, (std::array<int64_t, 2>{384, 384}));
  EXPECT_NE(parse_error(R"({"model_type": "vit"})", "{" + type + R"(224}, "crop_pct": 0.009})").find("crop_pct"),
            std::string::npos);
}

TEST(Config, ResamplingIsPillowsNumber) {
  const char* const names[] = {"nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(processor("\"resample\": " + std::to_string(i)).interpolation, names[i]);
  for (const char* number : {"-1", "6"}) {
    EXPECT_NE(parse_error(R"({"model_type": "vit"})", std::string("{\"resample\": ") + number + "}").find("resample"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace vitrail::models
