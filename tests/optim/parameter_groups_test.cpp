// SPDX-License-Identifier: Apache-2.0
#include "vitrail/optim/parameter_groups.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/models/vision_transformer.h"

namespace vitrail::optim {
namespace {

using testing::error_of;

TEST(ParameterGroups, MatchTimmForEveryParameter) {
  std::ifstream file(testing::fixture("optim/groups.json"));
  const auto models = nlohmann::ordered_json::parse(file);
  ASSERT_EQ(models.size(), 3u);
  for (const auto& [model, rows] : models.items()) {
    std::vector<nn::NamedTensor> parameters;
    for (const auto& [name, row] : rows.items()) {
      const auto extents = row.at("shape").get<std::vector<int64_t>>();
      const Shape shape{std::span<const int64_t>(extents)};
      parameters.push_back({name, Tensor::empty(shape, DType::f32, Device::meta)});
    }
    const auto groups = parameter_groups(parameters, {.weight_decay = 0.05, .layer_decay = 0.75});
    ASSERT_EQ(groups.size(), parameters.size());
    for (const Parameter& p : groups) {
      EXPECT_EQ(p.weight_decay, rows.at(p.name).at("weight_decay").get<double>()) << model << " " << p.name;
      EXPECT_DOUBLE_EQ(p.rate_scale, rows.at(p.name).at("scale").get<double>()) << model << " " << p.name;
    }
  }
}

TEST(ParameterGroups, FrozenParametersAreLeftOutAndNeedNoGradient) {
  models::VisionTransformerConfig config;
  config.img_size = {8, 8};
  config.patch_size = {4, 4};
  config.embed_dim = 8;
  config.depth = 2;
  config.num_heads = 2;
  config.num_classes = 3;
  RandomParams params;
  models::VisionTransformer model(config, ParamSource(params));
  const auto groups = parameter_groups(model, {.frozen = {"blocks.0.*", "regex:(cls|pos)_.*"}});
  size_t trained = 0;
  for (const nn::NamedTensor& p : model.named_parameters()) {
    const bool frozen = p.name.starts_with("blocks.0.") || p.name == "cls_token" || p.name == "pos_embed";
    EXPECT_EQ(autograd::requires_grad(p.tensor), !frozen) << p.name;
    trained += !frozen;
  }
  EXPECT_EQ(groups.size(), trained);
}

TEST(ParameterGroups, WrongPatternsAreErrorsThatNameThem) {
  const std::vector<nn::NamedTensor> parameters{{"head.weight", Tensor::zeros({2, 2})},
                                                {"head.bias", Tensor::zeros({2})}};
  auto message = [&](const GroupOptions& options) { return error_of([&] { parameter_groups(parameters, options); }); };
  EXPECT_ERROR(message({.frozen = {"haed.*"}}), "frozen", "'haed.*', which matches none");
  EXPECT_ERROR(message({.frozen = {"*"}}), "frozen", "none left");
  EXPECT_NE(message({.no_decay = {"regex:("}}).find("expected a regular expression"), std::string::npos);
  EXPECT_ERROR(message({.layer_decay = 0}), "layer_decay", "0");
}

TEST(NamePattern, MatchesTheCompleteNameByGlobOrRegex) {
  EXPECT_TRUE(matches("blocks.*.weight", "blocks.0.attn.qkv.weight"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("h?ad.*", "head.bias"));
  EXPECT_FALSE(matches("head", "head.bias"));
  EXPECT_FALSE(matches("*.weight", "head.bias"));
  EXPECT_TRUE(matches("*a*b*", "xaxxabx"));
  EXPECT_FALSE(matches("blocks[0].*", "blocks0.x"));  // only * and ? are special
  EXPECT_TRUE(matches("regex:blocks\\.[01]\\..*", "blocks.1.norm1.bias"));
  EXPECT_FALSE(matches("regex:blocks", "blocks.1.norm1.bias"));
}

TEST(LayerOf, CountsFromTheEmbeddingsToTheHead) {
  const std::pair<const char*, int64_t> layers[] = {{"cls_token", 0},
                                                    {"pos_embed", 0},
                                                    {"patch_embed.proj.weight", 0},
                                                    {"reg_token", 0},
                                                    {"dist_token", 0},
                                                    {"norm_pre.weight", 0},
                                                    {"rope.freqs", 0},
                                                    {"blocks.0.norm1.weight", 1},
                                                    {"blocks.11.x", 12},
                                                    {"norm.weight", 12},
                                                    {"fc_norm.weight", 13},
                                                    {"head.weight", 13},
                                                    {"attn_pool.latent", 13},
                                                    {"blocks.1x.weight", 13},
                                                    {"blocks.", 13},
                                                    {"blocks.3", 13},
                                                    {"image_encoder.blocks.2.y", 3},
                                                    {"image_encoder.pos_embed", 0},
                                                    {"mask_decoder.blocks.2.y", 13},
                                                    {"xblocks.2.y", 13}};
  for (const auto& [name, layer] : layers) EXPECT_EQ(layer_of(name, 12), layer) << name;
}

TEST(WeightDecay, LeavesOutVectorsBiasesAndTokens) {
  EXPECT_FALSE(excluded_from_decay("head.weight", {2, 3}));
  EXPECT_TRUE(excluded_from_decay("norm.weight", {3}));
  EXPECT_TRUE(excluded_from_decay("scale", {}));
  EXPECT_TRUE(excluded_from_decay("conv.bias", {1, 3}));
  for (const char* token :
       {"pos_embed", "cls_token", "reg_token", "dist_token", "rope.freqs", "image_encoder.pos_embed"})
    EXPECT_TRUE(excluded_from_decay(token, {1, 5, 3})) << token;
  for (const char* other : {"pos_embed2", "x.pos_embed", "patch_embed.proj.weight", "biased", "bias"})
    EXPECT_FALSE(excluded_from_decay(other, {2, 5, 3})) << other;
}

// layer_decay^(depth + 1 − layer): the head has the full rate, and each layer before it a smaller one.
TEST(ParameterGroups, RatesDecayFromTheHeadToTheEmbeddings) {
  std::vector<nn::NamedTensor> parameters;
  for (const char* name : {"pos_embed", "blocks.0.a.weight", "blocks.1.a.weight", "norm.weight", "head.weight"})
    parameters.push_back({name, Tensor::zeros({2, 2})});
  const auto groups =
      parameter_groups(parameters, {.weight_decay = 0.3, .layer_decay = 0.5, .no_decay = {"blocks.1.*"}});
  const double rates[] = {0.125, 0.25, 0.5, 0.5, 1}, decays[] = {0, 0.3, 0, 0.3, 0.3};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_DOUBLE_EQ(groups[i].rate_scale, rates[i]) << groups[i].name;
    EXPECT_EQ(groups[i].weight_decay, decays[i]) << groups[i].name;
  }
  EXPECT_EQ(parameter_groups(parameters, {})[0].rate_scale, 1) << "off by default";
  EXPECT_EQ(parameter_groups(parameters, {})[4].weight_decay, 0.05) << "the default";
  EXPECT_THROW(parameter_groups(parameters, {.weight_decay = -1}), Error);
  EXPECT_THROW(parameter_groups(parameters, {.layer_decay = 1.01}), Error);
}

// The definition: '*' takes any number of characters, '?' one.
bool slow_glob(const std::string& pattern, const std::string& name) {
  if (pattern.empty()) return name.empty();
  const std::string tail = pattern.substr(1);
  if (pattern[0] == '*') return slow_glob(tail, name) || (!name.empty() && slow_glob(pattern, name.substr(1)));
  return !name.empty() && (pattern[0] == '?' || pattern[0] == name[0]) && slow_glob(tail, name.substr(1));
}

TEST(NamePattern, EqualsTheDefinitionOfItsWildcards) {
  RandomStream random(1);
  const auto word = [&](const std::string& letters) {
    std::string text(random.bits() % 7, ' ');
    for (char& c : text) c = letters[random.bits() % letters.size()];
    return text;
  };
  int matched = 0;
  for (int round = 0; round < 5000; ++round) {
    const std::string pattern = word("ab*?"), name = word("ab");
    ASSERT_EQ(matches(pattern, name), slow_glob(pattern, name)) << pattern << " " << name;
    matched += slow_glob(pattern, name);
  }
  EXPECT_GT(matched, 300);
}

TEST(ParameterGroups, KeepTheOrderAndTheTensors) {
  const std::vector<nn::NamedTensor> parameters{
      {"blocks.0.w", Tensor::zeros({2, 2})}, {"head.weight", Tensor::zeros({3, 2})}, {"norm.bias", Tensor::zeros({2})}};
  const auto groups = parameter_groups(parameters, {.weight_decay = 0.25, .frozen = {"head.*"}});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].name, "blocks.0.w");
  EXPECT_EQ(groups[0].tensor.storage(), parameters[0].tensor.storage());
  EXPECT_EQ(groups[1].name, "norm.bias");
  EXPECT_EQ(groups[0].weight_decay, 0.25);
  EXPECT_EQ(groups[1].weight_decay, 0);
  const GroupOptions defaults;
  EXPECT_EQ(defaults.weight_decay, 0.05);
  EXPECT_EQ(defaults.layer_decay, 1);
}

TEST(ParameterGroups, ErrorsNameTheOption) {
  const std::vector<nn::NamedTensor> parameters{{"w", Tensor::zeros({2, 2})}};
  const auto message = [&](const GroupOptions& options) {
    return error_of([&] { parameter_groups(parameters, options); });
  };
  EXPECT_ERROR(message({.weight_decay = -0.5}), "weight_decay", "-0.5");
  EXPECT_ERROR(message({.layer_decay = 1.5}), "layer_decay", "1.5");
  EXPECT_ERROR(message({.no_decay = {"w", "x*"}}), "no_decay", "'x*', which matches none");
  EXPECT_TRUE(error_of([] {
                matches("regex:(", "a");
              }).starts_with("pattern: expected a regular expression after 'regex:', got 'regex:(' ("));
  EXPECT_NO_THROW(parameter_groups(parameters, {.weight_decay = 0, .layer_decay = 1}));
}

// The image encoder of Segment Anything has its own layers; what is behind it has the full rate.
TEST(ParameterGroups, OfAnImageEncoderCountItsBlocks) {
  std::vector<nn::NamedTensor> parameters;
  for (const char* name : {"image_encoder.pos_embed", "image_encoder.blocks.1.w", "image_encoder.blocks.2.w",
                           "image_encoder.neck.0.weight", "mask_decoder.blocks.9.w"})
    parameters.push_back({name, Tensor::zeros({2, 2})});
  const auto groups = parameter_groups(parameters, {.layer_decay = 0.5});
  const double rates[] = {0.0625, 0.25, 0.5, 1, 1};
  for (size_t i = 0; i < 5; ++i) EXPECT_DOUBLE_EQ(groups[i].rate_scale, rates[i]) << groups[i].name;
}

}  // namespace
}  // namespace vitrail::optim
