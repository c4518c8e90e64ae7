// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/model_setup_internal.h"

#include "tests/support/golden.h"
#include "tests/train/training_fixture.h"
#include "vitrail/base/random.h"
#include "vitrail/models/load.h"
#include "vitrail/nn/positional_encoding.h"
#include "vitrail/weights/hub_layout.h"

namespace vitrail::train {
namespace {

ModelRecipe recipe_of(const std::string& model) {
  return parse_recipe(R"({"model": )" + model + R"(, "data": {"train": "x"}, "epochs": 1})", "r.json").model;
}

// Writes a small model of the classes cat, dog and frog, and returns its folder.
std::string source_model(int depth = 2) {
  const fs::path folder = testing::scratch_folder() / ("source" + std::to_string(depth));
  PreparedModel made = prepare_model(
      recipe_of(R"({"img_size": 16, "patch_size": 4, "embed_dim": 16, "num_heads": 2, "mlp_ratio": 2, "depth": )" +
                std::to_string(depth) + "}"),
      {"cat", "dog", "frog"}, 1);
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const nn::NamedTensor& parameter : made.model.named_parameters())
    tensors.emplace_back(parameter.name, parameter.tensor);
  weights::write_hub_folder(folder, models::write_model_config(made.config), tensors);
  return folder.string();
}

bool equal(const Tensor& a, const Tensor& b) { return static_cast<bool>(testing::close(a, b, 0)); }

TEST(ModelSetup, TheSeedDeterminesTheWeights) {
  const ModelRecipe recipe =
      recipe_of(R"({"img_size": 8, "patch_size": 4, "embed_dim": 8, "depth": 1, "num_heads": 1})");
  auto head = [&](uint64_t seed) { return prepare_model(recipe, {"a", "b"}, seed).model.parameter("head.weight"); };
  EXPECT_TRUE(equal(head(1), head(1)));
  EXPECT_FALSE(equal(head(1), head(2)));
}

TEST(ModelSetup, TheHeadHasTheClassesOfTheData) {
  const PreparedModel made = prepare_model(recipe_of("\"cifar_vit_d192\""), {"a", "b", "c"}, 0);
  EXPECT_EQ(made.config.vit.num_classes, 3);
  EXPECT_EQ(made.config.labels.size(), 3u);
  const std::string message = error_of([] {
    prepare_model(recipe_of(R"({"architecture": "cifar_vit_d192", "num_classes": 7})"), {"a", "b"}, 0);
  });
  EXPECT_TRUE(contains(message, "model.num_classes: expected 2")) << message;
}

TEST(ModelSetup, PositionsCanBeInitialisedWithSinesAndCosines) {
  const std::string fields = R"("img_size": [8, 12], "patch_size": 4, "embed_dim": 8, "depth": 1, "num_heads": 1)";
  const PreparedModel made = prepare_model(recipe_of("{\"positions\": \"sincos2d\", " + fields + "}"), {"a", "b"}, 3);
  const PreparedModel plain = prepare_model(recipe_of("{" + fields + "}"), {"a", "b"}, 3);
  const Tensor positions = made.model.parameter("pos_embed");
  EXPECT_TRUE(equal(positions.narrow(1, 0, 1), Tensor::zeros({1, 1, 8})));  // class token
  EXPECT_TRUE(equal(positions.narrow(1, 1, 6), nn::sincos_positions_2d({2, 3}, 8)));
  for (const nn::NamedTensor& parameter : plain.model.named_parameters())
    EXPECT_EQ(equal(made.model.parameter(parameter.name), parameter.tensor), parameter.name != "pos_embed");
  const std::string message = error_of([&] {
    prepare_model(recipe_of("{\"positions\": \"sincos2d\", \"pos_embed\": \"none\", " + fields + "}"), {"a", "b"}, 3);
  });
  EXPECT_TRUE(contains(message, "model.positions")) << message;
}

// The mean diagonal of W_v W_o is −0.4 ± 4 · 0.4 / 32 (four standard errors).  Layers and seeds have different weights.
TEST(ModelSetup, MimeticInitialisationChangesOnlyAttention) {
  const std::string fields = R"("img_size": 8, "patch_size": 4, "embed_dim": 32, "depth": 2, "num_heads": 4)";
  const ModelRecipe recipe = recipe_of("{\"mimetic\": {}, " + fields + "}");
  const PreparedModel made = prepare_model(recipe, {"a", "b"}, 3);
  const PreparedModel plain = prepare_model(recipe_of("{" + fields + "}"), {"a", "b"}, 3);
  for (const nn::NamedTensor& parameter : plain.model.named_parameters()) {
    const bool attention = parameter.name.find(".attn.") != std::string::npos;
    const bool weight = parameter.name.ends_with(".weight");  // biases are zero with and without it
    EXPECT_EQ(equal(made.model.parameter(parameter.name), parameter.tensor), !(attention && weight)) << parameter.name;
  }
  const float* value = made.model.parameter("blocks.1.attn.qkv.weight").data<float>() + 2 * 32 * 32;
  const float* proj = made.model.parameter("blocks.1.attn.proj.weight").data<float>();
  double trace = 0;
  for (int64_t c = 0; c < 32; ++c) {
    for (int64_t k = 0; k < 32; ++k) trace += static_cast<double>(value[k * 32 + c]) * proj[c * 32 + k];
  }
  EXPECT_NEAR(trace / 32, -0.4, 4 * 0.4 / 32);
  const std::string name = "attn.qkv.weight";
  EXPECT_FALSE(equal(made.model.parameter("blocks.0." + name), made.model.parameter("blocks.1." + name)));
  EXPECT_TRUE(equal(made.model.parameter("blocks.0." + name),
                    prepare_model(recipe, {"a", "b"}, 3).model.parameter("blocks.0." + name)));
  EXPECT_FALSE(equal(made.model.parameter("blocks.0." + name),
                     prepare_model(recipe, {"a", "b"}, 4).model.parameter("blocks.0." + name)));
}

TEST(ModelSetup, TheSameClassesCopyTheHead) {
  const std::string source = source_model();
  const PreparedModel made = prepare_model(recipe_of(R"({"init": ")" + source + "\"}"), {"cat", "dog", "frog"}, 9);
  const models::VisionTransformer original = models::build_model(models::open_model(source));
  for (const nn::NamedTensor& parameter : original.named_parameters())
    EXPECT_TRUE(equal(made.model.parameter(parameter.name), parameter.tensor)) << parameter.name;
  EXPECT_TRUE(made.notes.empty());
}

TEST(ModelSetup, HeadRowsAreCopiedByClassName) {
  const std::string source = source_model();
  const PreparedModel made = prepare_model(recipe_of(R"({"init": ")" + source + "\"}"), {"Frog", "newt", "cat"}, 9);
  const Tensor before = models::build_model(models::open_model(source)).parameter("head.weight");
  const Tensor after = made.model.parameter("head.weight");
  EXPECT_TRUE(equal(after.select(0, 0), before.select(0, 2)));
  EXPECT_TRUE(equal(after.select(0, 2), before.select(0, 0)));
  EXPECT_FALSE(equal(after.select(0, 1), before.select(0, 1)));
  ASSERT_EQ(made.notes.size(), 1u);
  EXPECT_EQ(made.notes[0], "head: 2 of 3 classes from the checkpoint, the others new");
}

TEST(ModelSetup, OtherClassesGetANewHeadWithANote) {
  const PreparedModel made =
      prepare_model(recipe_of(R"({"init": ")" + source_model() + "\"}"), {"oak", "elm", "ash", "fir"}, 9);
  EXPECT_EQ(made.model.parameter("head.weight").size(0), 4);
  ASSERT_EQ(made.notes.size(), 1u);
  EXPECT_EQ(made.notes[0], "head: new, 4 classes");
}

// The projection of CLIP has as many outputs as there are classes here; it is no classifier.
TEST(ModelSetup, AnImageTowerWithAProjectionGetsAClassifier) {
  const std::string source = testing::fixture("models/hf_clip").string();
  std::vector<std::string> classes;
  for (int i = 0; i < 10; ++i) classes.push_back(str("class ", i));
  const PreparedModel made = prepare_model(recipe_of(R"({"init": ")" + source + "\"}"), classes, 9);
  EXPECT_EQ(made.model.parameter("head.bias").size(0), 10);
  EXPECT_FALSE(made.config.vit.projection_head);
  EXPECT_FALSE(made.config.text);
  ASSERT_EQ(made.notes.size(), 1u);
  EXPECT_EQ(made.notes[0], "head: new, 10 classes");
}

TEST(ModelSetup, AnotherImageAndPatchSizeResamplePositionsAndPatchEmbedding) {
  const PreparedModel made =
      prepare_model(recipe_of(R"({"init": ")" + source_model() + R"(", "img_size": 48, "patch_size": 8})"),
                    {"cat", "dog", "frog"}, 9);
  EXPECT_EQ(made.model.parameter("pos_embed").shape(), (Shape{1, 37, 16}));
  EXPECT_EQ(made.model.parameter("patch_embed.proj.weight").shape(), (Shape{16, 3, 8, 8}));
  ASSERT_EQ(made.notes.size(), 2u);
  EXPECT_EQ(made.model.forward(Tensor::randn({1, 3, 48, 48}, 3)).shape(), (Shape{1, 3}));
}

TEST(ModelSetup, AGridThatDoesNotFitIsAnErrorOfTheRecipe) {
  for (const std::string& start : {R"({"init": ")" + source_model() + R"(")", std::string(R"({"embed_dim": 8)")}) {
    for (const auto& [size, part] : {std::pair{"33", "model: patch_embed: expected an image size that the patch size"},
                                     std::pair{"0", "model: img_size: expected a value from 1"}}) {
      const std::string message = error_of([&, size = size] {
        prepare_model(recipe_of(start + R"(, "patch_size": 4, "img_size": )" + size + "}"), {"cat", "dog"}, 9);
      });
      EXPECT_TRUE(message.starts_with(part)) << message;
    }
  }
}

TEST(ModelSetup, PoolingAndInputChannelsCanChange) {
  const std::string source = source_model();
  const PreparedModel made = prepare_model(
      recipe_of(R"({"init": ")" + source + R"(", "global_pool": "avg", "in_chans": 1})"), {"cat", "dog", "frog"}, 9);
  const models::VisionTransformer original = models::build_model(models::open_model(source));
  EXPECT_TRUE(equal(made.model.parameter("fc_norm.weight"), original.parameter("norm.weight")));
  EXPECT_EQ(made.model.parameter("patch_embed.proj.weight").size(1), 1);
}

TEST(ModelSetup, AShallowerModelTakesEvenlySpacedBlocks) {
  const std::string source = source_model(6);
  const models::VisionTransformer original = models::build_model(models::open_model(source));
  const std::vector<std::pair<int, std::vector<int>>> kept{{1, {0}}, {2, {0, 5}}, {3, {0, 3, 5}}, {4, {0, 2, 3, 5}}};
  for (const auto& [depth, blocks] : kept) {
    const PreparedModel made =
        prepare_model(recipe_of(R"({"init": ")" + source + R"(", "depth": )" + std::to_string(depth) + "}"),
                      {"cat", "dog", "frog"}, 9);
    std::string listed;
    for (size_t i = 0; i < blocks.size(); ++i) {
      for (const char* part : {".norm1.bias", ".attn.qkv.weight", ".mlp.fc2.weight"}) {
        EXPECT_TRUE(equal(made.model.parameter("blocks." + std::to_string(i) + part),
                          original.parameter("blocks." + std::to_string(blocks[i]) + part)))
            << depth << " blocks, " << i << part;
      }
      listed += (i ? ", " : "") + std::to_string(blocks[i]);
    }
    EXPECT_EQ(made.notes, std::vector<std::string>{"blocks: " + listed + " of the checkpoint's 6"});
  }
}

TEST(ModelSetup, MismatchedParametersAreListed) {
  const std::string message = error_of([] {
    prepare_model(recipe_of(R"({"init": ")" + source_model() + R"(", "depth": 3, "mlp_ratio": 4})"), {"cat", "dog"}, 0);
  });
  EXPECT_TRUE(contains(message, "blocks.2.norm1.weight: not in the checkpoint")) << message;
  EXPECT_TRUE(contains(message, "blocks.0.mlp.fc1.weight: [32, 16] instead of [64, 16]")) << message;
}

TEST(ModelSetup, PreprocessingOfTheRecipeOverridesTheCheckpoint) {
  models::ModelConfig config;
  config.vit.img_size = {32, 32};
  config.preprocessing.mean = std::vector<double>{0.1, 0.2, 0.3};
  config.preprocessing.crop_pct = 0.9;
  DataRecipe recipe;
  recipe.std = {0.4, 0.4, 0.4};
  const models::Preprocessing result = preprocessing_of(recipe, config);
  EXPECT_EQ((*result.mean)[2], 0.3);
  EXPECT_EQ((*result.std)[0], 0.4);
  EXPECT_EQ(*result.crop_pct, 0.9);
  EXPECT_EQ(*result.interpolation, "bicubic");
  EXPECT_EQ((*result.input_size)[0], 32);
}

TEST(ModelSetup, AGreyscaleModelHasTheMeanOfRgbStatistics) {
  models::ModelConfig config;
  config.vit.in_chans = 1;
  config.preprocessing.mean = std::vector<double>{0.25, 0.5, 0.75};
  config.preprocessing.std = std::vector<double>{0.5, 0.25, 0.125};
  const models::Preprocessing result = preprocessing_of({}, config);
  EXPECT_EQ(*result.mean, std::vector<double>{0.5});
  EXPECT_EQ(*result.std, std::vector<double>{0.875 / 3});
  config.preprocessing = {};
  EXPECT_EQ(*preprocessing_of({}, config).mean, std::vector<double>{0.5});
}

TEST(ModelSetup, WithoutACheckpointPreprocessingHasItsDefaults) {
  models::ModelConfig config;
  DataRecipe recipe;
  const models::Preprocessing plain = preprocessing_of(recipe, config);
  EXPECT_EQ(*plain.mean, std::vector<double>(3, 0.5));
  EXPECT_EQ(*plain.std, std::vector<double>(3, 0.5));
  EXPECT_EQ(*plain.crop_pct, 1);
  EXPECT_EQ(plain.rule, models::ResizeRule::timm);
  recipe.mean = {0.1, 0.2, 0.3};
  recipe.interpolation = "bilinear";
  recipe.crop_pct = 0.75;
  const models::Preprocessing own = preprocessing_of(recipe, config);
  EXPECT_EQ(*own.mean, recipe.mean);
  EXPECT_EQ(*own.interpolation, "bilinear");
  EXPECT_EQ(*own.crop_pct, 0.75);
}

// Biases of a checkpoint that the model has no place for would change what it computes.
TEST(ModelSetup, ParametersThatTheModelLacksAreAnError) {
  for (const char* depth : {"", R"(, "depth": 1)"}) {
    const std::string message = error_of([&] {
      prepare_model(recipe_of(R"({"init": ")" + source_model() + R"(", "qkv_bias": false)" + depth + "}"),
                    {"cat", "dog", "frog"}, 1);
    });
    EXPECT_TRUE(contains(message, "blocks.0.attn.qkv.bias: not in the model")) << message;
  }
}

}  // namespace
}  // namespace vitrail::train
