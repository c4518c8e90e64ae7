// SPDX-License-Identifier: Apache-2.0
// timm's config.json: what is read in which order, what is written, and messages.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/models/config_formats_internal.h"

namespace vitrail::models {
namespace {

using testing::contains;
using testing::error_of;

ModelConfig parse_timm(const std::string& json, const std::string& family_args = "",
                       const std::string& preprocessor = "") {
  return parse_model_config(json, preprocessor, "file", family_args);
}

std::string timm_error(const std::string& json) {
  return error_of([&] { parse_timm(json); });
}

nlohmann::ordered_json written(const std::string& json) {
  return nlohmann::ordered_json::parse(write_model_config(parse_timm(json)));
}

// Architecture, the weights' family, the file's own fields, vitrail_args and model_args: later ones have precedence.
TEST(TimmConfig, LaterSourcesHavePrecedence) {
  const std::string name = R"("architecture": "vit_tiny_patch16_224")";
  EXPECT_EQ(parse_timm("{" + name + "}").vit.depth, 12);
  EXPECT_EQ(parse_timm("{" + name + "}", R"({"depth": 5})").vit.depth, 5);
  EXPECT_EQ(parse_timm("{" + name + R"(, "vitrail_args": {"depth": 6}})", R"({"depth": 5})").vit.depth, 6);
  EXPECT_EQ(parse_timm("{" + name + R"(, "model_args": {"depth": 7}, "vitrail_args": {"depth": 6}})").vit.depth, 7);
  EXPECT_EQ(parse_timm("{" + name + R"(, "num_classes": 3})", R"({"num_classes": 5})").vit.num_classes, 3);
  EXPECT_EQ(parse_timm("{" + name + R"(, "num_classes": 3, "model_args": {"num_classes": 4}})").vit.num_classes, 4);
  EXPECT_EQ(parse_timm("{" + name + R"(, "global_pool": "avg"})", R"({"global_pool": "map"})").vit.global_pool,
            GlobalPool::avg);
  EXPECT_EQ(parse_timm("{" + name + R"(, "global_pool": "avg", "model_args": {"global_pool": ""}})").vit.global_pool,
            GlobalPool::none);
  EXPECT_EQ(parse_timm(R"({"architecture": "vit"})").vit.embed_dim, 768) << "the defaults";
  EXPECT_EQ(parse_timm("{" + name + "}").vit.embed_dim, 192);
}

// timm/models/_builder.py, _update_default_model_kwargs().
TEST(TimmConfig, PretrainedCfgDeterminesWhatItsArgumentsDoNot) {
  const auto vit = [](const std::string& fields) {
    return parse_timm(R"({"architecture": "vit_tiny_patch16_224", )" + fields + "}").vit;
  };
  const std::string input = R"("pretrained_cfg": {"input_size": [1, 32, 48])";
  using Size = std::array<int64_t, 2>;
  EXPECT_EQ(vit(input + "}").in_chans, 1);
  EXPECT_EQ(vit(input + "}").img_size, (Size{224, 224})) << "not fixed";
  EXPECT_EQ(vit(R"("pretrained_cfg": {"num_classes": 5})").num_classes, 5);
  EXPECT_EQ(vit(R"("pretrained_cfg": {"num_classes": -1})").num_classes, 1000) << "the architecture's";
  EXPECT_EQ(vit(R"("pretrained_cfg": {"num_classes": 5}, "num_classes": 7)").num_classes, 7);
  const std::string fixed = input + R"(, "fixed_input_size": true})";
  EXPECT_EQ(vit(fixed).img_size, (Size{32, 48}));
  EXPECT_EQ(vit(fixed + R"(, "model_args": {"img_size": 64, "in_chans": 4})").img_size, (Size{64, 64}));
  EXPECT_EQ(vit(fixed + R"(, "model_args": {"img_size": 64, "in_chans": 4})").in_chans, 4);
  EXPECT_EQ(vit(fixed + R"(, "model_args": {"dynamic_img_size": true})").img_size, (Size{224, 224}));
  // Old files have the fields of pretrained_cfg in the file itself.
  EXPECT_EQ(vit(R"("input_size": [1, 32, 48], "fixed_input_size": true)").img_size, (Size{32, 48}));
  EXPECT_EQ(vit(R"("input_size": [1, 32, 48])").in_chans, 1);
}

TEST(TimmConfig, ErrorsNameTheirFields) {
  const std::string vit = R"({"architecture": "vit", )";
  EXPECT_ERROR(timm_error(vit + R"("input_size": [224, 224]})"), "file: input_size", "2 numbers");
  EXPECT_ERROR(timm_error(vit + R"("pretrained_cfg": {"input_size": [3, -1, 224]}})"),
               "file: pretrained_cfg: input_size", "-1");
  EXPECT_ERROR(timm_error(vit + R"("label_names": {"a": 1}})"), "file: label_names", "object");
  EXPECT_ERROR(timm_error(vit + R"("label_names": ["a", 1]})"), "file: label_names", "number");
  EXPECT_ERROR(timm_error(vit + R"("int8": {"kept": [1]}})"), "file: int8: kept", "number");
  EXPECT_ERROR(timm_error(vit + R"("num_classes": 2, "label_names": ["a"]})"), "file", "1");
  EXPECT_ERROR(timm_error(vit + R"("model_args": {"depth": -1}})"), "file: depth", "-1");
  EXPECT_TRUE(
      timm_error(R"({"architecture": "vit_tiny_patch16_24"})")
          .starts_with("file: architecture: expected \"vit\" or a registered name (like vit_tiny_patch16_224, "));
  EXPECT_TRUE(contains(timm_error(R"({"architecture": "vit_tiny_patch16_24"})"), ", got \"vit_tiny_patch16_24\""));
  EXPECT_ERROR(timm_error("{}"), "file", "none of them");
  EXPECT_TRUE(error_of([] {
                parse_timm(R"({"architecture": "vit"})", R"({"dept": 1})");
              }).starts_with("model_args of the key map: dept: expected one of the fields "));
}

TEST(TimmConfig, KeyMapsAreNamesPathsOrRules) {
  EXPECT_EQ(parse_timm(R"({"architecture": "vit"})").key_map, "");
  EXPECT_EQ(parse_timm(R"({"architecture": "vit", "key_map": "maps/own.json"})").key_map, "maps/own.json");
  EXPECT_EQ(parse_timm(R"({"architecture": "vit", "key_map": {"name": "own"}})").key_map, R"({"name":"own"})");
  EXPECT_EQ(parse_timm(R"({"architecture": "vit", "key_map": null})").key_map, "");
}

TEST(TimmConfig, DescriptionsNeedLabels) {
  const auto descriptions = [](const std::string& fields) {
    return parse_timm(R"({"architecture": "vit", "num_classes": 2, )" + fields + "}").descriptions;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(descriptions(R"("label_descriptions": {"a": "an a"})"), Names{});
  EXPECT_EQ(descriptions(R"("label_names": ["a", "b"])"), Names{});
  EXPECT_EQ(descriptions(R"("label_names": ["a", "b"], "label_descriptions": {"b": "a b", "c": "a c"})"),
            (Names{"a", "a b"}));
}

// A processor of transformers beside a file of timm, unless that has steps of its own.
TEST(TimmConfig, AConvertedModelKeepsItsProcessor) {
  const std::string processor = R"({"image_processor_type": "BlipImageProcessor"})";
  EXPECT_EQ(parse_timm(R"({"architecture": "vit"})", "", processor).preprocessing.rule, ResizeRule::huggingface);
  EXPECT_EQ(parse_timm(R"({"architecture": "vit", "crop_pct": 0.5})", "", processor).preprocessing.rule,
            ResizeRule::timm);
  EXPECT_ERROR(error_of([] { parse_timm(R"({"architecture": "vit"})", "", R"({"resample": 9})"); }),
               "file (preprocessor_config.json): resample", "9");
}

TEST(TimmConfig, ProblemTypesAreThree) {
  const auto type = [](const std::string& name) {
    return parse_timm(R"({"architecture": "vit", "problem_type": ")" + name + "\"}").problem_type;
  };
  EXPECT_EQ(type("single_label_classification"), ProblemType::single_label);
  EXPECT_EQ(type("multi_label_classification"), ProblemType::multi_label);
  const testing::Warnings warnings;
  EXPECT_EQ(type("regression"), ProblemType::regression);
  EXPECT_EQ(type("ranking"), std::nullopt);
  ASSERT_EQ(warnings.messages.size(), 2u);
  EXPECT_TRUE(contains(warnings.messages[0],
                       "file: problem_type: \"regression\": the outputs are no probabilities of classes"));
}

TEST(TimmConfig, ARegressionKeepsItsValues) {
  ModelConfig config;
  EXPECT_STREQ(activation_of(config), "softmax");
  EXPECT_NO_THROW(refuse_regression(config, "model"));
  config.problem_type = ProblemType::multi_label;
  EXPECT_STREQ(activation_of(config), "sigmoid");
  config.problem_type = ProblemType::regression;
  for (const int64_t classes : {1, 3}) {
    config.vit.num_classes = classes;
    EXPECT_STREQ(activation_of(config), "none");
    EXPECT_FALSE(gives_sigmoid(config));
    EXPECT_EQ(nlohmann::json::parse(write_model_config(config))["problem_type"], "regression");
  }
  EXPECT_ERROR(error_of([&] { refuse_regression(config, "model"); }), "model", "problem_type \"regression\"");
}

TEST(TimmConfig, ClassifiersHaveAHeadOfClasses) {
  ModelConfig config;
  EXPECT_NO_THROW(require_classifier(config, "model"));
  config.vit.projection_head = true;
  EXPECT_ERROR(error_of([&] { require_classifier(config, "model"); }), "model", "a model without a head (use embed)");
  config.text.emplace();
  EXPECT_ERROR(error_of([&] { require_classifier(config, "model"); }), "model",
               "a model without a head (use embed, or zeroshot with the names of the classes)");
  config = {};
  config.vit.global_pool = GlobalPool::none;
  EXPECT_ERROR(error_of([&] { require_classifier(config, "model"); }), "model",
               "logits of each token (global_pool \"\")");
  config = {};
  config.vit.num_classes = 0;
  EXPECT_THROW(require_classifier(config, "model"), Error);
  config.vit.num_classes = 1;
  EXPECT_NO_THROW(require_classifier(config, "model"));
  EXPECT_TRUE(gives_sigmoid(config));
  config.problem_type = ProblemType::single_label;
  EXPECT_TRUE(gives_sigmoid(config)) << "softmax of one class is always 1";
}

TEST(WriteConfig, ADifferenceFromTheArchitectureIsAnArgument) {
  EXPECT_EQ(written(R"({"architecture": "vit_tiny_patch16_224"})").dump(),
            R"({"architecture":"vit_tiny_patch16_224","num_classes":1000,"num_features":192,)"
            R"("pretrained_cfg":{"crop_mode":"center"}})");
  EXPECT_EQ(written(R"({"architecture": "vit_tiny_patch16_224", "num_classes": 3, "global_pool": "avg",
      "model_args": {"depth": 5, "norm_eps": 0.5, "weight_init": "jax"}, "tag": "mine",
      "pretrained_cfg": {"input_size": [3, 20, 30], "mean": [0.5], "std": [0.25], "crop_pct": 0.5,
                         "interpolation": "box", "crop_mode": "border"}})")
                .dump(),
            R"({"architecture":"vit_tiny_patch16_224","num_classes":3,"num_features":192,"global_pool":"avg",)"
            R"("model_args":{"global_pool":"avg","depth":5},"vitrail_args":{"norm_eps":0.5,"weight_init":"jax"},)"
            R"("pretrained_cfg":{"input_size":[3,20,30],"interpolation":"box","crop_pct":0.5,"crop_mode":"border",)"
            R"("mean":[0.5],"std":[0.25],"tag":"mine"}})");
}

// timm has no argument for some fields, and other names for some parameters of Eva.
TEST(WriteConfig, WhatTimmLacksIsAVit) {
  for (const char* field :
       {R"("qk_scale": 0.5)", R"("norm_first": false)", R"("patch_norm": "pre")", R"("pos_embed": "sinusoidal")",
        R"("head_hidden": 3)", R"("head_dim": 32)", R"("attn_type": "eva", "init_values": 1)",
        R"("global_pool": "token_avg")", R"("projection_head": true)"}) {
    const auto json = written(str(R"({"architecture": "vit_tiny_patch16_224", "model_args": {)", field, "}}"));
    EXPECT_EQ(json["architecture"], "vit") << field;
    EXPECT_EQ(json["model_args"]["embed_dim"], 192) << field;
    EXPECT_FALSE(json.contains("vitrail_args")) << field;
    EXPECT_FALSE(json["model_args"].contains("num_classes")) << field;
  }
  for (const char* field :
       {R"("pos_interp": {"antialias": false})", R"("norm_eps": 0.5)", R"("weight_init": "moco")"}) {
    const auto json = written(str(R"({"architecture": "vit_tiny_patch16_224", "model_args": {)", field, "}}"));
    EXPECT_EQ(json["architecture"], "vit_tiny_patch16_224") << field;
    EXPECT_EQ(json["vitrail_args"].size(), 1u) << field;
    EXPECT_FALSE(json.contains("model_args")) << field;
  }
  for (const char* field : {R"("qkv_bias": false)",     R"("qk_norm": true)",
                            R"("pre_norm": true)",      R"("final_norm": false)",
                            R"("fc_norm": true)",       R"("init_values": 0.5)",
                            R"("reg_tokens": 2)",       R"("no_embed_class": true)",
                            R"("act_layer": "relu")",   R"("drop_rate": 0.5)",
                            R"("pos_drop_rate": 0.5)",  R"("patch_drop_rate": 0.5)",
                            R"("attn_drop_rate": 0.5)", R"("proj_drop_rate": 0.5)",
                            R"("drop_path_rate": 0.5)", R"("dynamic_img_size": true)",
                            R"("proj_bias": false)",    R"("norm_layer": "rmsnorm")",
                            R"("in_chans": 1)",         R"("num_heads": 4)",
                            R"("patch_size": 8)",       R"("img_size": 64)",
                            R"("pos_embed": "none")",   R"("scale_mlp": true)"}) {
    const auto json = written(str(R"({"architecture": "vit_tiny_patch16_224", "model_args": {)", field, "}}"));
    EXPECT_EQ(json["architecture"], "vit_tiny_patch16_224") << field;
    EXPECT_EQ(json["model_args"].size(), 1u) << field;
    EXPECT_FALSE(json.contains("vitrail_args")) << field;
  }
}

TEST(WriteConfig, HiddenWidthsAreRatiosOfTimm) {
  const auto args = [](const std::string& fields) {
    return written(R"({"architecture": "vit_tiny_patch16_224", "model_args": {)" + fields + "}}")["model_args"].dump();
  };
  EXPECT_EQ(args(R"("mlp_hidden": 384)"), R"({"mlp_ratio":2.0})");
  EXPECT_EQ(args(R"("mlp_hidden": 768)"), "null") << "the architecture's";
  EXPECT_EQ(args(R"("mlp_ratio": 2.5)"), R"({"mlp_ratio":2.5})");
}

TEST(WriteConfig, OtherFieldsAreWrittenWhereTheyAreSet) {
  ModelConfig config = parse_timm(R"({"architecture": "vit", "num_classes": 2})");
  config.labels = {"a", "b"};
  config.descriptions = {"an a", "a b"};
  config.int8 = Int8Config{{"blocks.0.mlp.fc1"}};
  config.problem_type = ProblemType::single_label;
  const auto json = nlohmann::json::parse(write_model_config(config));
  EXPECT_EQ(json["label_names"].dump(), R"(["a","b"])");
  EXPECT_EQ(json["label_descriptions"].dump(), R"({"a":"an a","b":"a b"})");
  EXPECT_EQ(json["int8"].dump(), R"({"excluded":["blocks.0.mlp.fc1"]})");
  EXPECT_EQ(json["problem_type"], "single_label_classification");
  EXPECT_EQ(json["num_classes"], 2);
  EXPECT_FALSE(json["pretrained_cfg"].contains("tag"));
  config.preprocessing.rule = ResizeRule::huggingface;
  EXPECT_FALSE(nlohmann::json::parse(write_model_config(config))["pretrained_cfg"].contains("crop_mode"));
  EXPECT_TRUE(write_model_config(config).ends_with("}\n"));
}

}  // namespace
}  // namespace vitrail::models
