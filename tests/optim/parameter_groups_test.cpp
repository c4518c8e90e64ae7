// SPDX-License-Identifier: Apache-2.0
#include "vitrail/optim/parameter_groups.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
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
  EXPECT_EQ(message({.frozen = {"haed.*"}}),
            "frozen: expected patterns that each match a parameter's name, got 'haed.*', which matches none");
  EXPECT_EQ(message({.frozen = {"*"}}), "frozen: expected patterns that leave something to train, got none left");
  EXPECT_NE(message({.no_decay = {"regex:("}}).find("expected a regular expression"), std::string::npos);
  EXPECT_EQ(message({.layer_decay = 0}), "layer_decay: expected a factor in (0, 1], got 0");
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

}  // namespace
}  // namespace vitrail::optim
