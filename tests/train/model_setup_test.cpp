// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/classification/model_setup_internal.h"

#include <thread>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/train/training_fixture.h"
#include "vitrail/base/random.h"
#include "vitrail/data/datasets/imagenet_labels.h"
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

// The folder of a model with this configuration and random weights.
std::string written_model(const models::ModelConfig& config) {
  const fs::path folder = testing::scratch_folder() / "model";
  RandomParams random(5);
  const models::VisionTransformer model(config.vit, ParamSource(random));
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const nn::NamedTensor& parameter : model.named_parameters())
    tensors.emplace_back(parameter.name, parameter.tensor);
  weights::write_hub_folder(folder, models::write_model_config(config), tensors);
  return folder.string();
}

models::ModelConfig small_config(int64_t classes) {
  models::ModelConfig config;
  config.architecture = "vit";
  config.vit.img_size = {8, 12};
  config.vit.patch_size = {4, 4};
  config.vit.embed_dim = 8;
  config.vit.depth = 1;
  config.vit.num_heads = 2;
  config.vit.num_classes = classes;
  config.preprocessing = preprocessing_of({}, config);
  return config;
}

PreparedModel prepared_from(const std::string& folder, const std::vector<std::string>& classes,
                            const std::string& more = "") {
  return prepare_model(recipe_of(R"({"init": ")" + folder + "\"" + more + "}"), classes, 9);
}

// The rows of a checkpoint's head that the model has; −1: a new row.
std::vector<int64_t> copied_rows(const PreparedModel& made, const std::string& folder) {
  const Tensor before = models::build_model(models::open_model(folder)).parameter("head.weight");
  const Tensor after = made.model.parameter("head.weight");
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < after.size(0); ++i) {
    rows.push_back(-1);
    for (int64_t r = 0; r < before.size(0); ++r) {
      if (equal(after.select(0, i), before.select(0, r))) rows.back() = r;
    }
  }
  return rows;
}

TEST(ModelSetup, ClassesAreMatchedByNameOrWithoutNamesByIndex) {
  models::ModelConfig config = small_config(3);
  const std::string unnamed = written_model(config);
  EXPECT_EQ(copied_rows(prepared_from(unnamed, {"a", "b", "c"}), unnamed), (std::vector<int64_t>{0, 1, 2}));
  const PreparedModel two = prepared_from(unnamed, {"a", "b"});
  EXPECT_EQ(copied_rows(two, unnamed), (std::vector<int64_t>{-1, -1}));
  EXPECT_EQ(two.notes, (std::vector<std::string>{"head: new, 2 classes"}));
  config.labels = {"Tree_Frog", "newt", "TOAD"};
  const std::string named = written_model(config);
  const PreparedModel some = prepared_from(named, {"toad", "tree frog"});
  EXPECT_EQ(copied_rows(some, named), (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(some.notes, (std::vector<std::string>{"head: 2 of the checkpoint's 3 classes"}));
  const PreparedModel more = prepared_from(named, {"x", "newt", "y", "z"});
  EXPECT_EQ(copied_rows(more, named), (std::vector<int64_t>{-1, 1, -1, -1}));
  EXPECT_EQ(more.notes, (std::vector<std::string>{"head: 1 of 4 classes from the checkpoint, the others new"}));
  EXPECT_EQ(copied_rows(prepared_from(named, {"0", "1", "2"}), named), (std::vector<int64_t>{0, 1, 2}))
      << "classes without names";
  EXPECT_EQ(copied_rows(prepared_from(named, {"0", "2", "1"}), named), (std::vector<int64_t>{-1, -1, -1}));
  config.labels = {"0", "1", "2"};
  const std::string placeholders = written_model(config);
  EXPECT_EQ(copied_rows(prepared_from(placeholders, {"a", "b", "c"}), placeholders), (std::vector<int64_t>{0, 1, 2}));
}

TEST(ModelSetup, FoldersOfImageNetMayBeNamedByTheirIds) {
  models::ModelConfig config = small_config(1000);
  for (const std::string_view name : data::imagenet_class_names()) config.labels.emplace_back(name);
  const std::string folder = written_model(config);
  const PreparedModel made = prepared_from(folder, {"n01443537", config.labels[2], "n01440764", "n99999999"});
  EXPECT_EQ(copied_rows(made, folder), (std::vector<int64_t>{1, 2, 0, -1}));
  EXPECT_EQ(made.notes, (std::vector<std::string>{"head: 3 of 4 classes from the checkpoint, the others new"}));
}

TEST(ModelSetup, ResamplingIsNotedWithBothSizes) {
  const std::string folder = written_model(small_config(3));
  const PreparedModel made =
      prepared_from(folder, {"a", "b", "c"}, R"(, "img_size": [16, 8], "patch_size": [4, 8], "in_chans": 1)");
  EXPECT_EQ(made.notes,
            (std::vector<std::string>{"positions: interpolated from 2×3 to 4×1",
                                      "patch embedding: summed over the colour channels, for greyscale images",
                                      "patch embedding: resampled from 4×4 to 4×8"}));
  const models::VisionTransformer source = models::build_model(models::open_model(folder));
  const PreparedModel grey = prepared_from(folder, {"a", "b", "c"}, R"(, "in_chans": 1)");
  const Tensor before = source.parameter("patch_embed.proj.weight"),
               after = grey.model.parameter("patch_embed.proj.weight");
  ASSERT_EQ(after.shape(), (Shape{8, 1, 4, 4}));
  for (int64_t out = 0; out < 8; ++out) {
    for (int64_t i = 0; i < 16; ++i) {
      const float* const from = before.data<float>() + out * 48 + i;
      EXPECT_FLOAT_EQ(after.data<float>()[out * 16 + i], from[0] + from[16] + from[32]);
    }
  }
  const PreparedModel larger = prepared_from(folder, {"a", "b", "c"}, R"(, "img_size": [12, 16])");
  EXPECT_TRUE(equal(larger.model.parameter("pos_embed"),
                    nn::resample_positions(source.parameter("pos_embed"), 1, {2, 3}, {3, 4}, {})));
  EXPECT_TRUE(equal(larger.model.parameter("cls_token"), source.parameter("cls_token")));
}

TEST(ModelSetup, TheConfigurationIsOfTheDataAndTheRecipe) {
  models::ModelConfig source = small_config(3);
  source.architecture = "named";
  source.labels = {"x", "y", "z"};
  source.descriptions = {"d", "e", "f"};
  source.tag = "tag";
  source.vit.projection_head = true;
  source.vit.head_bias = false;
  const models::ModelConfig own = model_config(recipe_of(R"({"init": "m", "depth": 4})"), {"a", "b"}, &source);
  EXPECT_EQ(own.architecture, "named");
  EXPECT_EQ(own.labels, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(own.descriptions.empty());
  EXPECT_EQ(own.tag, "");
  EXPECT_EQ(own.vit.num_classes, 2);
  EXPECT_EQ(own.vit.depth, 4);
  EXPECT_EQ(own.vit.embed_dim, 8);
  EXPECT_FALSE(own.vit.projection_head);
  EXPECT_FALSE(own.vit.head_bias.has_value());
  const models::ModelConfig registered =
      model_config(recipe_of(R"({"architecture": "cifar_vit_d192", "init": "m"})"), {"a", "b"}, &source);
  EXPECT_EQ(registered.architecture, "cifar_vit_d192");
  EXPECT_EQ(registered.vit.embed_dim, 192);
  EXPECT_EQ(model_config(recipe_of("{}"), {"a", "b"}, nullptr).architecture, "vit");
  EXPECT_ERROR(error_of([] {
                 model_config(recipe_of(R"({"num_classes": 5})"), {"a", "b"}, nullptr);
               }),
               "model.num_classes", "5");
  ModelRecipe unknown;
  unknown.architecture = "none";
  EXPECT_ERROR(error_of([&] { model_config(unknown, {"a", "b"}, nullptr); }), "model.architecture", "\"none\"");
}

TEST(ModelSetup, TheArchitectureIsKnownBeforeTheClasses) {
  EXPECT_EQ(architecture_of(recipe_of(R"({"architecture": "cifar_vit_d192", "depth": 3})")).embed_dim, 192);
  EXPECT_EQ(architecture_of(recipe_of(R"({"architecture": "cifar_vit_d192", "depth": 3})")).depth, 3);
  EXPECT_EQ(architecture_of(recipe_of("{}")).embed_dim, models::VisionTransformerConfig().embed_dim);
  const std::string folder = written_model(small_config(3));
  const auto init = architecture_of(recipe_of(R"({"init": ")" + folder + R"(", "in_chans": 1})"));
  EXPECT_EQ(init.img_size, (std::array<int64_t, 2>{8, 12}));
  EXPECT_EQ(init.in_chans, 1);
  EXPECT_EQ(architecture_of(recipe_of(R"({"init": ")" + folder + R"(", "architecture": "cifar_vit_d192"})")).embed_dim,
            192);
}

TEST(ModelSetup, TheProblemTypeIsThatOfTheLabels) {
  const std::string folder = written_model(small_config(3));
  for (const char* fields : {"\"depth\": 1, \"img_size\": 16", ""}) {
    const ModelRecipe recipe =
        recipe_of(*fields != '\0' ? "{" + std::string(fields) + "}" : R"({"init": ")" + folder + "\"}");
    EXPECT_EQ(prepare_model(recipe, {"a", "b", "c"}, 1, true).config.problem_type, models::ProblemType::multi_label);
    EXPECT_FALSE(prepare_model(recipe, {"a", "b", "c"}, 1).config.problem_type.has_value());
  }
}

TEST(ModelSetup, AllProblemsOfACheckpointAreListed) {
  const std::string folder = written_model(small_config(3));
  const std::string message = error_of([&] {
    prepared_from(folder, {"a", "b", "c"}, R"(, "mlp_ratio": 2, "init_values": 0.1)");
  });
  EXPECT_EQ(message, folder +
                         ": the checkpoint does not fit the recipe's model:\n"
                         "  blocks.0.ls1.gamma: not in the checkpoint\n"
                         "  blocks.0.mlp.fc1.weight: [32, 8] instead of [16, 8]\n"
                         "  blocks.0.mlp.fc1.bias: [32] instead of [16]\n"
                         "  blocks.0.mlp.fc2.weight: [8, 32] instead of [8, 16]\n"
                         "  blocks.0.ls2.gamma: not in the checkpoint");
}

TEST(ModelSetup, PreprocessingHasASettingForEachChannel) {
  models::ModelConfig config = small_config(3);
  DataRecipe recipe;
  recipe.mean = {0.1, 0.2};
  EXPECT_ERROR(error_of([&] { preprocessing_of(recipe, config); }), "data: mean", "2: 0.1,0.2");
  recipe.mean = {0.25};
  EXPECT_EQ(*preprocessing_of(recipe, config).mean, (std::vector<double>{0.25}));
  recipe.preset = "imagenet";
  recipe.mean.clear();
  const models::Preprocessing preset = preprocessing_of(recipe, config);
  EXPECT_EQ(*preset.mean, (std::vector<double>{0.485, 0.456, 0.406}));
  EXPECT_EQ(*preset.std, (std::vector<double>{0.229, 0.224, 0.225}));
  EXPECT_EQ(*preset.input_size, (std::array<int64_t, 2>{8, 12}));
  recipe.std = {0.5, 0.25, 0.125};
  EXPECT_EQ(*preprocessing_of(recipe, config).std, recipe.std) << "over the preset";
}

TEST(ModelSetup, TheFinalNormMovesWithThePooling) {
  models::ModelConfig config = small_config(3);
  config.vit.global_pool = models::GlobalPool::avg;
  const std::string folder = written_model(config);
  const models::VisionTransformer source = models::build_model(models::open_model(folder));
  const Tensor scale = source.parameter("fc_norm.weight");
  const PreparedModel made = prepared_from(folder, {"a", "b", "c"}, R"(, "global_pool": "token")");
  EXPECT_TRUE(equal(made.model.parameter("norm.weight"), scale));
  EXPECT_TRUE(equal(made.model.parameter("norm.bias"), source.parameter("fc_norm.bias")));
  EXPECT_TRUE(made.notes.empty());
}

TEST(ModelSetup, BothHeadsOfADistilledModelAreCopied) {
  models::ModelConfig config = small_config(3);
  config.vit.dist_token = true;
  config.labels = {"cat", "dog", "cow"};
  const std::string folder = written_model(config);
  const models::VisionTransformer source = models::build_model(models::open_model(folder));
  const PreparedModel made = prepared_from(folder, {"cow", "dog", "ox"});
  for (const char* head : {"head.weight", "head_dist.weight"}) {
    EXPECT_TRUE(equal(made.model.parameter(head).select(0, 0), source.parameter(head).select(0, 2))) << head;
    EXPECT_TRUE(equal(made.model.parameter(head).select(0, 1), source.parameter(head).select(0, 1))) << head;
    EXPECT_FALSE(equal(made.model.parameter(head).select(0, 2), source.parameter(head).select(0, 0))) << head;
  }
  EXPECT_EQ(made.notes, (std::vector<std::string>{"head: 2 of 3 classes from the checkpoint, the others new",
                                                  "head_dist: 2 of 3 classes from the checkpoint, the others new"}));
}

// As the processes of a run, or runs of one program.
TEST(PrepareModel, ThreadsMayShareARecipe) {
  ModelRecipe recipe;
  recipe.init = source_model();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 10; ++k) EXPECT_EQ(prepare_model(recipe, {"a", "b"}, 1).config.vit.num_classes, 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace vitrail::train
