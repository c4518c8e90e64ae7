// SPDX-License-Identifier: Apache-2.0
// Segment Anything's configurations: read from shapes, named sizes, and the file that is written.
#include "vitrail/models/sam/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/models/sam/architectures.h"

namespace vitrail::models {
namespace {

using Shapes = std::map<std::string, Shape>;
using testing::error_of;

// An encoder of two blocks, the second one global, and a decoder; every extent is another number.
Shapes shapes() {
  const std::string encoder = "image_encoder.", decoder = "mask_decoder.";
  return {{encoder + "pos_embed", {1, 9, 9, 30}},
          {encoder + "patch_embed.proj.weight", {30, 4, 7, 7}},
          {encoder + "blocks.0.attn.rel_pos_h", {9, 6}},  // a window has 5 tokens a side
          {encoder + "blocks.0.attn.qkv.weight", {54, 30}},
          {encoder + "blocks.0.attn.qkv.bias", {54}},
          {encoder + "blocks.0.mlp.lin1.weight", {88, 30}},
          {encoder + "blocks.1.attn.rel_pos_h", {17, 6}},  // the whole grid has 9
          {encoder + "neck.0.weight", {24, 30, 1, 1}},
          {decoder + "iou_token.weight", {1, 24}},
          {decoder + "mask_tokens.weight", {5, 24}},
          {decoder + "transformer.layers.0.cross_attn_token_to_image.q_proj.weight", {8, 24}},
          {decoder + "transformer.layers.0.mlp.lin1.weight", {66, 24}},
          {decoder + "transformer.layers.2.norm1.weight", {24}},
          {decoder + "output_upscaling.0.weight", {24, 14, 2, 2}},
          {decoder + "output_upscaling.3.weight", {14, 10, 2, 2}},
          {decoder + "iou_prediction_head.layers.0.weight", {77, 24}},
          {"prompt_encoder.mask_downscaling.0.weight", {3, 1, 2, 2}},
          {"prompt_encoder.mask_downscaling.3.weight", {11, 3, 2, 2}}};
}

TEST(SamConfig, EveryExtentIsReadFromItsTensor) {
  const SamConfig config =
      sam_config(shapes(), "file", {.decoder_heads = 4, .norm_eps = 0.5, .preprocessing = SamPreprocessing::medsam});
  EXPECT_EQ(config.encoder.grid, 9);
  EXPECT_EQ(config.encoder.patch_size, 7);
  EXPECT_EQ(config.encoder.image_size(), 63);
  EXPECT_EQ(config.encoder.in_chans, 4);
  EXPECT_EQ(config.encoder.dim, 30);
  EXPECT_EQ(config.encoder.head_dim, 6);
  EXPECT_EQ(config.encoder.num_heads, 3);
  EXPECT_EQ(config.encoder.mlp_hidden, 88);
  EXPECT_TRUE(config.encoder.qkv_bias);
  EXPECT_EQ(config.encoder.out_chans, 24);
  EXPECT_EQ(config.encoder.norm_eps, 0.5);
  ASSERT_EQ(config.encoder.blocks.size(), 2u);
  EXPECT_EQ(config.encoder.blocks[0].window, 5);
  EXPECT_EQ(config.encoder.blocks[0].table_length, 9);
  EXPECT_EQ(config.encoder.blocks[1].window, 0);
  EXPECT_EQ(config.encoder.blocks[1].table_length, 17);
  EXPECT_TRUE(config.encoder.stages.empty());
  EXPECT_EQ(config.decoder.dim, 24);
  EXPECT_EQ(config.decoder.num_heads, 4);
  EXPECT_EQ(config.decoder.depth, 3);
  EXPECT_EQ(config.decoder.cross_dim, 8);
  EXPECT_EQ(config.decoder.mlp_hidden, 66);
  EXPECT_EQ(config.decoder.mask_tokens, 5);
  EXPECT_EQ(config.decoder.upscale_dims[0], 14);
  EXPECT_EQ(config.decoder.upscale_dims[1], 10);
  EXPECT_EQ(config.decoder.iou_hidden, 77);
  EXPECT_EQ(config.decoder.mask_chans[0], 3);
  EXPECT_EQ(config.decoder.mask_chans[1], 11);
  EXPECT_FALSE(config.decoder.high_quality);
  EXPECT_EQ(config.preprocessing, SamPreprocessing::medsam);
  EXPECT_TRUE(config.has_decoder);
  EXPECT_EQ(config.mask_size(), 36);
}

// transformers 5.24 (SamVisionAttention) and segment_anything: windows of w × w have tables of 2w − 1 rows, and global
// blocks those of the grid.  Windows larger than the grid pad it.
TEST(SamConfig, WindowsMayBeLargerThanTheGrid) {
  Shapes wide = shapes();
  wide["image_encoder.blocks.0.attn.rel_pos_h"] = {27, 6};
  const SamConfig config = sam_config(wide, "file", {.decoder_heads = 4});
  EXPECT_EQ(config.encoder.blocks[0].window, 14);
  EXPECT_EQ(config.encoder.blocks[0].table_length, 27);
  EXPECT_EQ(config.encoder.blocks[1].window, 0);
}

TEST(SamConfig, AListOfGlobalBlocksTellsThemFromWindowsOfTheGridsSize) {
  Shapes equal = shapes();
  equal["image_encoder.blocks.0.attn.rel_pos_h"] = {17, 6};
  EXPECT_EQ(sam_config(equal, "file", {.decoder_heads = 4}).encoder.blocks[0].window, 0);
  const SamConfig config = sam_config(equal, "file", {.decoder_heads = 4, .global_blocks = std::vector<int64_t>{1}});
  EXPECT_EQ(config.encoder.blocks[0].window, 9);
  EXPECT_EQ(config.encoder.blocks[1].window, 0);
  EXPECT_EQ(write_sam_config(config),
            "{\n  \"architecture\": \"segment_anything\",\n  \"image_size\": 63,\n  \"global_attn_indexes\": [\n"
            "    1\n  ]\n}\n");
}

TEST(SamConfig, MissingTensorsLeaveDefaultsOrWhatOthersShow) {
  const auto without = [](std::initializer_list<const char*> names) {
    Shapes rest = shapes();
    for (const char* name : names) EXPECT_EQ(rest.erase(name), 1u) << name;
    return sam_config(rest, "file", {.decoder_heads = 4});
  };
  const SamConfig positions = without({"image_encoder.pos_embed"});
  EXPECT_EQ(positions.encoder.grid, 9) << "of the longest table";
  EXPECT_EQ(positions.encoder.dim, 30) << "of the patch embedding";
  EXPECT_FALSE(without({"image_encoder.blocks.0.attn.qkv.bias"}).encoder.qkv_bias);
  EXPECT_EQ(without({"image_encoder.blocks.0.mlp.lin1.weight"}).encoder.mlp_hidden, 120);
  EXPECT_EQ(without({"image_encoder.blocks.0.attn.qkv.weight"}).encoder.num_heads, 5);
  EXPECT_EQ(without({"image_encoder.blocks.1.attn.rel_pos_h"}).encoder.blocks.size(), 1u);
  EXPECT_EQ(without({"mask_decoder.transformer.layers.0.cross_attn_token_to_image.q_proj.weight"}).decoder.cross_dim,
            12);
  EXPECT_EQ(without({"mask_decoder.transformer.layers.0.mlp.lin1.weight"}).decoder.mlp_hidden, 2048);
  EXPECT_EQ(without({"mask_decoder.mask_tokens.weight"}).decoder.mask_tokens, 4);
  EXPECT_EQ(without({"mask_decoder.output_upscaling.3.weight"}).decoder.upscale_dims[1], 32);
  EXPECT_EQ(without({"prompt_encoder.mask_downscaling.0.weight"}).decoder.mask_chans[0], 4);
  EXPECT_EQ(
      without({"mask_decoder.transformer.layers.0.cross_attn_token_to_image.q_proj.weight",
               "mask_decoder.transformer.layers.0.mlp.lin1.weight", "mask_decoder.transformer.layers.2.norm1.weight"})
          .decoder.depth,
      1);
  // A tensor of another rank leaves the default as well.
  Shapes other = shapes();
  other["mask_decoder.iou_prediction_head.layers.0.weight"] = {77};
  EXPECT_EQ(sam_config(other, "file", {.decoder_heads = 4}).decoder.iou_hidden, 256);
  other = shapes();
  other["mask_decoder.hf_token.weight"] = {1, 24};
  EXPECT_TRUE(sam_config(other, "file", {.decoder_heads = 4}).decoder.high_quality);
}

TEST(SamConfig, ErrorsNameTheShapesOfNoModel) {
  const auto error = [](const std::function<void(Shapes&)>& change, int64_t heads = 4) {
    Shapes changed = shapes();
    change(changed);
    return error_of([&] { sam_config(changed, "file", {.decoder_heads = heads}); });
  };
  EXPECT_ERROR(error([](Shapes& s) { s["image_encoder.pos_embed"] = {1, 0, 9, 30}; }), "file", "[1, 0, 9, 30]");
  EXPECT_ERROR(error([](Shapes& s) { s["image_encoder.pos_embed"] = {1, 65537, 9, 30}; }), "file", "[1, 65537, 9, 30]");
  EXPECT_ERROR(error([](Shapes& s) { s["image_encoder.blocks.0.attn.qkv.weight"] = {55, 30}; }), "file", "55");
  EXPECT_ERROR(error([](Shapes& s) { s["image_encoder.blocks.4096.norm1.bias"] = {30}; }), "file",
               "image_encoder.blocks.4096.norm1.bias");
  EXPECT_ERROR(error([](Shapes& s) { s["image_encoder.neck.0.weight"] = {26, 30, 1, 1}; }), "file", "26");
  const std::string decoder =
      "file: expected a mask decoder with 2 or more masks and a width that 4 heads divide, got ";
  EXPECT_EQ(error([](Shapes& s) {
              s["mask_decoder.mask_tokens.weight"] = {1, 24};
            }),
            decoder + "width 24, 8 in cross-attention, 1 mask tokens");
  EXPECT_EQ(error([](Shapes& s) {
              s["mask_decoder.transformer.layers.0.cross_attn_token_to_image.q_proj.weight"] = {6, 24};
            }),
            decoder + "width 24, 6 in cross-attention, 5 mask tokens");
  EXPECT_EQ(error([](Shapes& s) {
              s["mask_decoder.transformer.layers.0.cross_attn_token_to_image.q_proj.weight"] = {16, 24};
            }),
            decoder + "width 24, 16 in cross-attention, 5 mask tokens");
  EXPECT_TRUE(testing::contains(error([](Shapes&) {}, 5), "a width that 5 heads divide"));
  EXPECT_TRUE(testing::contains(error([](Shapes&) {}, 0), "a width that 0 heads divide"));
  EXPECT_ERROR(error([](Shapes& s) {
                 s["mask_decoder.hf_token.weight"] = {1, 24};
                 s["image_encoder.blocks.1.attn.rel_pos_h"] = {15, 6};
               }),
               "file", "windows in all blocks");
}

TEST(SamConfig, AnEncoderAloneHasNoDecoder) {
  Shapes encoder = shapes();
  std::erase_if(encoder, [](const auto& item) { return item.first.starts_with("mask_decoder."); });
  const std::string message =
      "file: expected a checkpoint of Segment Anything with its prompt encoder and mask decoder, "
      "got a checkpoint without a mask decoder";
  EXPECT_EQ(error_of([&] { sam_config(encoder, "file"); }), message);
  std::erase_if(encoder, [](const auto& item) { return item.first.starts_with("prompt_encoder."); });
  const SamConfig config = sam_config(encoder, "file", {.norm_eps = 0.25, .preprocessing = SamPreprocessing::medsam});
  EXPECT_FALSE(config.has_decoder);
  EXPECT_EQ(config.encoder.dim, 30);
  EXPECT_EQ(config.encoder.norm_eps, 0.25);
  EXPECT_EQ(config.decoder.dim, 24);
  EXPECT_EQ(config.preprocessing, SamPreprocessing::medsam);
  encoder.erase("image_encoder.blocks.0.attn.rel_pos_h");
  EXPECT_EQ(error_of([&] { sam_config(encoder, "file"); }), message);
}

// TinyViT: a stage of convolutions and two with attention, behind a decoder of 24.
Shapes tiny_shapes() {
  Shapes all = shapes();
  std::erase_if(all, [](const auto& item) { return item.first.starts_with("image_encoder."); });
  const std::string layers = "image_encoder.layers.";
  all.insert({{"image_encoder.patch_embed.seq.0.c.weight", {6, 3, 3, 3}},
              {"image_encoder.neck.0.weight", {24, 20, 1, 1}},
              {layers + "0.blocks.0.conv1.c.weight", {33, 8, 1, 1}},
              {layers + "0.blocks.1.conv1.c.weight", {33, 8, 1, 1}},
              {layers + "0.downsample.conv1.c.weight", {12, 8, 1, 1}},
              {layers + "1.blocks.0.attn.proj.weight", {12, 12}},
              {layers + "1.blocks.0.attn.attention_biases", {3, 49}},
              {layers + "1.blocks.0.mlp.fc1.weight", {44, 12}},
              {layers + "1.downsample.conv1.c.weight", {20, 12, 1, 1}},
              {layers + "2.blocks.0.attn.proj.weight", {20, 20}},
              {layers + "2.blocks.0.attn.attention_biases", {4, 16}},
              {layers + "2.blocks.0.mlp.fc1.weight", {55, 20}},
              {layers + "2.blocks.2.norm.weight", {20}}});
  return all;
}

TEST(SamConfig, StagesOfTinyVitAreReadFromShapes) {
  const SamConfig config = sam_config(tiny_shapes(), "file", {.decoder_heads = 4, .image_size = 96});
  EXPECT_EQ(config.encoder.grid, 6);
  EXPECT_EQ(config.encoder.stem, 6);
  EXPECT_EQ(config.encoder.in_chans, 3);
  EXPECT_EQ(config.encoder.out_chans, 24);
  ASSERT_EQ(config.encoder.stages.size(), 3u);
  struct Want {
    int64_t dim, depth, hidden, heads, window, out, stride;
  };
  const Want want[] = {{8, 2, 33, 1, 0, 12, 2}, {12, 1, 44, 3, 7, 20, 1}, {20, 3, 55, 4, 4, 0, 1}};
  for (size_t i = 0; i < 3; ++i) {
    const SamTinyStage& stage = config.encoder.stages[i];
    EXPECT_EQ(stage.dim, want[i].dim) << i;
    EXPECT_EQ(stage.depth, want[i].depth) << i;
    EXPECT_EQ(stage.hidden, want[i].hidden) << i;
    EXPECT_EQ(stage.num_heads, want[i].heads) << i;
    EXPECT_EQ(stage.window, want[i].window) << i;
    EXPECT_EQ(stage.out_dim, want[i].out) << i;
    EXPECT_EQ(stage.stride, want[i].stride) << i;
  }
  const auto error = [](const std::function<void(Shapes&)>& change, int64_t size = 96) {
    Shapes changed = tiny_shapes();
    change(changed);
    return error_of([&] { sam_config(changed, "file", {.decoder_heads = 4, .image_size = size}); });
  };
  EXPECT_ERROR(error([](Shapes&) {}, 100), "file", "100");
  EXPECT_ERROR(error([](Shapes&) {}, 0), "file", "0");
  EXPECT_ERROR(error([](Shapes& s) {
                 s["image_encoder.layers.1.blocks.0.attn.attention_biases"] = {3, 48};
               }),
               "file", "width 12, 3 heads, 48 biases");
  const std::string chain = "file: expected three or more stages of TinyViT; all but the last merge patches, got ";
  EXPECT_EQ(error([](Shapes& s) {
              s["image_encoder.layers.2.downsample.conv1.c.weight"] = {9, 20, 1, 1};
            }),
            chain + "3 stages");
  EXPECT_EQ(error([](Shapes& s) {
              std::erase_if(s, [](const auto& item) { return item.first.starts_with("image_encoder.layers.2"); });
              s.erase("image_encoder.layers.1.downsample.conv1.c.weight");
            }),
            chain + "2 stages");
  Shapes high_quality = tiny_shapes();
  high_quality["mask_decoder.hf_token.weight"] = {1, 24};
  EXPECT_TRUE(sam_config(high_quality, "file", {.decoder_heads = 4, .image_size = 96}).decoder.high_quality);
}

TEST(SamConfig, DefaultsArePublishedModels) {
  const SamConfig config;
  EXPECT_EQ(config.encoder.image_size(), 1024);
  EXPECT_EQ(config.mask_size(), 256);
  EXPECT_EQ(config.decoder.dim, 256);
  EXPECT_EQ(config.decoder.num_heads, 8);
  EXPECT_EQ(config.decoder.depth, 2);
  EXPECT_EQ(config.decoder.cross_dim, 128);
  EXPECT_EQ(config.encoder.stem, 32);
  EXPECT_EQ(SamConfigDefaults().decoder_heads, 8);
  EXPECT_EQ(SamConfigDefaults().image_size, 1024);
  EXPECT_EQ(SamConfigDefaults().norm_eps, 1e-6);
  EXPECT_EQ(kSamNormEps, 1e-6);
  EXPECT_EQ(kTimmSamNormEps, 1e-5);
  EXPECT_EQ(kSamImageMean, (std::array{123.675f, 116.28f, 103.53f}));
  EXPECT_EQ(kSamImageStd, (std::array{58.395f, 57.12f, 57.375f}));
}

TEST(SamConfig, IsWrittenWhereItIsNotSegmentAnythings) {
  SamConfig config;
  config.encoder.grid = 6;
  EXPECT_EQ(write_sam_config(config), "{\n  \"architecture\": \"segment_anything\",\n  \"image_size\": 96\n}\n");
  config.preprocessing = SamPreprocessing::medsam;
  config.encoder.norm_eps = 0.5;
  EXPECT_EQ(write_sam_config(config),
            "{\n  \"architecture\": \"segment_anything\",\n  \"image_size\": 96,\n  \"preprocessing\": \"medsam\",\n"
            "  \"norm_eps\": 0.5\n}\n");
}

TEST(SamPreprocessing, HasNames) {
  for (const auto& [name, value] : {std::pair("segment_anything", SamPreprocessing::segment_anything),
                                    std::pair("medsam", SamPreprocessing::medsam)}) {
    EXPECT_STREQ(name_of(value), name);
    EXPECT_EQ(sam_preprocessing_from_name(name, "option"), value);
  }
  EXPECT_ERROR(error_of([] { sam_preprocessing_from_name("sam", "--preprocessing"); }), "--preprocessing", "'sam'");
}

// segment_anything/build_sam.py
TEST(SamArchitectures, AreThePublishedSizes) {
  struct Want {
    const char* name;
    int64_t dim, depth, heads;
    std::vector<int64_t> global;
  };
  const Want want[] = {{"sam_vit_b", 768, 12, 12, {2, 5, 8, 11}},
                       {"sam_vit_l", 1024, 24, 16, {5, 11, 17, 23}},
                       {"sam_vit_h", 1280, 32, 16, {7, 15, 23, 31}}};
  ASSERT_EQ(sam_architectures().size(), 7u);  // tests/models/sam2_test.cpp has the others
  for (size_t i = 0; i < 3; ++i) {
    const SamArchitecture* row = find_sam_architecture(want[i].name);
    ASSERT_EQ(row, &sam_architectures()[i]) << want[i].name;
    const SamEncoderConfig& encoder = row->config.encoder;
    EXPECT_EQ(encoder.dim, want[i].dim);
    EXPECT_EQ(encoder.num_heads, want[i].heads);
    EXPECT_EQ(encoder.head_dim, want[i].dim / want[i].heads);
    EXPECT_EQ(encoder.mlp_hidden, 4 * want[i].dim);
    ASSERT_EQ(static_cast<int64_t>(encoder.blocks.size()), want[i].depth);
    for (int64_t b = 0; b < want[i].depth; ++b) {
      const bool global = std::ranges::find(want[i].global, b) != want[i].global.end();
      EXPECT_EQ(encoder.blocks[static_cast<size_t>(b)].window, global ? 0 : 14) << b;
      EXPECT_EQ(encoder.blocks[static_cast<size_t>(b)].table_length, global ? 127 : 27) << b;
    }
  }
  EXPECT_EQ(find_sam_architecture("sam_vit_x"), nullptr);
}

}  // namespace
}  // namespace vitrail::models
