// SPDX-License-Identifier: Apache-2.0
// SAM 2: its configurations and files.  tests/sam/predictor_test.cpp compares what it computes with transformers.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/sam/architectures.h"
#include "vitrail/models/sam/sam.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using Named = std::vector<std::pair<std::string, Tensor>>;

fs::path folder_of(const char* name) { return testing::fixture("sam") / name; }

Tensor embedding_of(const Sam& sam) {
  const int64_t size = sam.config().encoder.image_size();
  return sam.encode(Tensor::randn({1, 3, size, size}, 7)).embedding;
}

// A folder with the tensors and the configuration of the fixture, both changed.
fs::path changed_folder(const std::function<void(Named&)>& change, const std::string& from = "",
                        const std::string& to = "") {
  const fs::path source = folder_of("sam2"), folder = testing::scratch_folder() / "changed";
  fs::create_directories(folder);
  const auto checkpoint = weights::Checkpoint::open(source / "model.safetensors");
  Named tensors;
  for (const std::string& name : checkpoint.names()) tensors.emplace_back(name, checkpoint.tensor(name));
  change(tensors);
  weights::write_safetensors(folder / "model.safetensors", tensors);
  std::string config = read_regular_text_file(source / "config.json");
  if (!from.empty()) {
    const size_t at = config.find(from);
    EXPECT_NE(at, config.npos) << from;
    config.replace(at, from.size(), to);
  }
  std::ofstream(folder / "config.json") << config;
  return folder;
}

void unchanged(Named& /*tensors*/) {}

TEST(Sam2, StagesAreReadFromTheConfigurationOfTransformers) {
  const SamConfig config = load_sam(folder_of("sam2")).config();
  ASSERT_TRUE(config.encoder.hiera);
  const HieraConfig& hiera = *config.encoder.hiera;
  ASSERT_EQ(hiera.stages.size(), 4u);
  const std::vector<std::array<int64_t, 5>> expected{
      {8, 1, 1, 8, 16}, {16, 2, 2, 6, 32}, {24, 3, 2, 4, 48}, {32, 1, 4, 2, 64}};
  for (size_t i = 0; i < 4; ++i) {
    const HieraStage& stage = hiera.stages[i];
    EXPECT_EQ((std::array{stage.dim, stage.depth, stage.num_heads, stage.window, stage.mlp_hidden}), expected[i]) << i;
    EXPECT_EQ(stage.pools, i > 0);
  }
  EXPECT_EQ(hiera.global_blocks, std::vector<int64_t>{4});
  EXPECT_EQ(hiera.positions, (std::array<int64_t, 2>{5, 3}));
  EXPECT_EQ(hiera.window_positions, 8);
  EXPECT_EQ(config.encoder.image_size(), 96);
  EXPECT_EQ(config.mask_size(), 24);
  EXPECT_EQ(config.preprocessing, SamPreprocessing::segment_anything_2);
  EXPECT_EQ(config.decoder.num_heads, 4);
  ASSERT_TRUE(config.decoder.single_mask_stability);
  EXPECT_EQ(config.decoder.single_mask_stability->delta, 1);
  EXPECT_EQ(config.decoder.single_mask_stability->threshold, 0.95);
}

TEST(Sam2, ASingleMaskCanAlwaysBeMaskZero) {
  const fs::path folder =
      changed_folder(unchanged, "\"dynamic_multimask_stability_delta\"",
                     "\"dynamic_multimask_via_stability\": false, \"dynamic_multimask_stability_delta\"");
  EXPECT_FALSE(load_sam(folder).config().decoder.single_mask_stability);
}

// The memory of a Sam2VideoModel is for videos.
TEST(Sam2, VideoModelsAreReadWithoutTheirMemory) {
  const fs::path folder = changed_folder(
      [](Named& tensors) {
        for (const char* name :
             {"memory_attention.layers.0.layer_norm1.weight", "memory_encoder.projection.bias",
              "mask_downsample.weight", "object_pointer_proj.proj_in.bias", "memory_temporal_positional_encoding",
              "temporal_positional_encoding_projection_layer.weight", "no_memory_positional_encoding",
              "no_object_pointer", "occlusion_spatial_embedding_parameter"})
          tensors.emplace_back(name, Tensor::zeros({2}));
      },
      "\"model_type\": \"sam2\"", "\"model_type\": \"sam2_video\"");
  EXPECT_TRUE(testing::close(embedding_of(load_sam(folder)), embedding_of(load_sam(folder_of("sam2"))), 0));
}

TEST(Sam2, ReportsAllWrongKeysAtOnce) {
  const fs::path folder = changed_folder([](Named& tensors) {
    std::erase_if(tensors, [](const auto& each) { return each.first == "mask_decoder.conv_s0.bias"; });
    tensors.emplace_back("vision_encoder.backbone.norm.weight", Tensor::zeros({2}));
  });
  const std::string error = error_of([&] { load_sam(folder); });
  EXPECT_TRUE(testing::contains(error, "mask_decoder.conv_s0.bias")) << error;
  EXPECT_TRUE(testing::contains(error, "vision_encoder.backbone.norm.weight")) << error;
}

TEST(Sam2, RefusesConfigurationsThatItCannotCompute) {
  const auto error = [](const std::string& from, const std::string& to) {
    const fs::path folder = changed_folder(unchanged, from, to);
    return error_of([&] { load_sam(folder); }).substr(folder.string().size() + 1);
  };
  EXPECT_ERROR(error("\"mlp_ratio\"", "\"query_stride\": [4, 4], \"mlp_ratio\""),
               "config.json: vision_config: backbone_config: query_stride", "[4,4]");
  EXPECT_ERROR(error("\"fpn_hidden_size\"", "\"fpn_top_down_levels\": [1], \"fpn_hidden_size\""),
               "config.json: vision_config: fpn_top_down_levels", "[1]");
  EXPECT_ERROR(error("[8, 6, 4, 2]", "[8, 6]"), "config.json: vision_config: backbone_config: window_size_per_stage",
               "2");
  EXPECT_ERROR(error("[8, 6, 4, 2]", "[8, 6, 5, 2]"), "model.safetensors: stage 3", "width 24, windows 5");
  EXPECT_ERROR(error("[8, 6, 4, 2]", "[8, 6, -4, 2]"), "model.safetensors: stage 2", "-4 and 48");
  EXPECT_ERROR(error("[1, 2, 2, 4]", "[1, 2, 5, 4]"), "model.safetensors: stage 2",
               "3 blocks of width 24 with 5 heads");
  EXPECT_ERROR(error("[1, 2, 3, 1]", "[1, 2, 3]"), "model.safetensors", "3 stages and pooling in 2");
  EXPECT_ERROR(error("\"global_attention_blocks\": [4]", "\"global_attention_blocks\": [7]"), "model.safetensors", "7");
  EXPECT_ERROR(error("\"image_size\": 96, \"mask_input", "\"image_size\": 80, \"mask_input"), "model.safetensors",
               "80");
}

// Numbers of parameters are those of transformers' Sam2Model, the others those of sam2/configs/sam2.1.
TEST(Sam2, PublishedSizes) {
  struct Want {
    const char* name;
    int64_t parameters, heads;
    std::vector<int64_t> windows, global;
  };
  const Want want[] = {{"sam2_hiera_tiny", 31440977, 1, {8, 4, 14, 7}, {5, 7, 9}},
                       {"sam2_hiera_small", 38538833, 1, {8, 4, 14, 7}, {7, 10, 13}},
                       {"sam2_hiera_base_plus", 73328657, 2, {8, 4, 14, 7}, {12, 16, 20}},
                       {"sam2_hiera_large", 216925121, 2, {8, 4, 16, 8}, {23, 33, 43}}};
  for (const Want& each : want) {
    const SamArchitecture* const row = find_sam_architecture(each.name);
    ASSERT_NE(row, nullptr) << each.name;
    RandomParams params(0, DType::f32, Device::meta);
    EXPECT_EQ(Sam(row->config, ParamSource(params)).num_parameters(), each.parameters) << each.name;
    const HieraConfig& hiera = *row->config.encoder.hiera;
    EXPECT_EQ(hiera.global_blocks, each.global) << each.name;
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(hiera.stages[i].num_heads, each.heads << i) << each.name;
      EXPECT_EQ(hiera.stages[i].window, each.windows[i]) << each.name;
    }
  }
}

// The authors' files have no configuration: heads, windows and global blocks are those of the published sizes.
TEST(Sam2, PublishedSizesAreKnownByTheirShapes) {
  size_t found = 0;
  for (const SamArchitecture& architecture : sam_architectures()) {
    if (!architecture.config.encoder.hiera) continue;
    ++found;
    RandomParams params(0, DType::f32, Device::meta);
    std::map<std::string, Shape> shapes;
    for (const nn::NamedTensor& each : Sam(architecture.config, ParamSource(params)).named_parameters())
      shapes.emplace(each.name, each.tensor.shape());
    const SamConfig config = sam_config(shapes, "file", {.preprocessing = SamPreprocessing::segment_anything_2});
    EXPECT_EQ(write_sam_config(config), write_sam_config(architecture.config)) << architecture.name;
    EXPECT_EQ(config.encoder.hiera->positions, architecture.config.encoder.hiera->positions) << architecture.name;
    EXPECT_EQ(config.encoder.image_size(), 1024);
  }
  EXPECT_EQ(found, 4u);
  const fs::path file = testing::scratch_folder() / "alone.pth";
  fs::copy_file(folder_of("sam2_authors") / "model.pth", file);
  EXPECT_ERROR(error_of([&] { load_sam(file); }), file.string(), "widths 8, 16, 24, 32, depths 1, 2, 3, 1");
}

TEST(Sam2, AConvertedFolderComputesTheSame) {
  for (const char* name : {"sam2", "sam2_authors"}) {
    const Sam sam = load_sam(folder_of(name));
    const fs::path folder = testing::scratch_folder() / name;
    fs::create_directories(folder);
    Named tensors;
    for (const nn::NamedTensor& each : sam.named_parameters()) tensors.emplace_back(each.name, each.tensor);
    weights::write_safetensors(folder / "model.safetensors", tensors);
    std::ofstream(folder / "config.json") << write_sam_config(sam.config());
    const Sam again = load_sam(folder);
    EXPECT_EQ(write_sam_config(again.config()), write_sam_config(sam.config()));
    EXPECT_TRUE(testing::close(embedding_of(again), embedding_of(sam), 0));
  }
}

// Embeddings in a cache are of one configuration: heads and windows are in no tensor's shape.
TEST(Sam2, TheDigestOfTheEncoderKnowsItsWindows) {
  const std::string digest = sam_encoder_digest(folder_of("sam2"));
  EXPECT_EQ(sam_encoder_digest(changed_folder(unchanged)), digest);
  EXPECT_NE(sam_encoder_digest(changed_folder(unchanged, "[8, 6, 4, 2]", "[8, 6, 4, 3]")), digest);
}

}  // namespace
}  // namespace vitrail::models
