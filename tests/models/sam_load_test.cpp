// SPDX-License-Identifier: Apache-2.0
// Checkpoints of Segment Anything: configurations from shapes, and errors.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/models/support.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/models/load.h"
#include "vitrail/models/sam/sam.h"

namespace vitrail::models {
namespace {

using testing::contains;

TEST(SamConfig, IsReadFromShapes) {
  const SamConfig config = load_sam(testing::fixture("sam/padded_windows/model.pth")).config();
  EXPECT_EQ(config.encoder.grid, 10);
  EXPECT_EQ(config.encoder.image_size(), 80);
  EXPECT_EQ(config.encoder.num_heads, 2);
  EXPECT_EQ(config.encoder.mlp_hidden, 64);
  ASSERT_EQ(config.encoder.blocks.size(), 3u);
  EXPECT_EQ(config.encoder.blocks[0].window, 4);
  EXPECT_EQ(config.encoder.blocks[1].window, 0);
  EXPECT_EQ(config.decoder.dim, 32);
  EXPECT_EQ(config.decoder.cross_dim, 16);
  EXPECT_EQ(config.mask_size(), 40);
  EXPECT_FALSE(load_sam(testing::fixture("sam/no_qkv_bias/model.pth")).config().encoder.qkv_bias);
  EXPECT_EQ(load_sam(testing::fixture("sam/head_dim_14/model.pth")).config().encoder.head_dim, 14);
}

// Every parameter is read, under its official name.
TEST(SamLoad, GivesTheTensorsOfTheFile) {
  const Sam sam = load_sam(testing::fixture("sam/windows/model.pth"));
  const SamTensors tensors = sam_tensors("windows/model.pth");
  EXPECT_EQ(sam.named_parameters().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) EXPECT_EQ(sam.parameter(name).shape(), tensor.shape()) << name;
}

TEST(SamLoad, ReportsAllWrongKeysAtOnce) {
  SamTensors tensors = sam_tensors("windows/model.pth");
  tensors.erase("image_encoder.blocks.1.norm1.bias");
  tensors.erase("prompt_encoder.no_mask_embed.weight");
  tensors["mask_decoder.obj_token.weight"] = Tensor::zeros({1, 16});
  tensors["mask_decoder.iou_token.weight"] = Tensor::zeros({2, 16});
  const std::string message = testing::error_of([&] { load_sam(saved(tensors)); });
  for (const char* key : {"image_encoder.blocks.1.norm1.bias", "prompt_encoder.no_mask_embed.weight",
                          "mask_decoder.obj_token.weight", "mask_decoder.iou_token.weight"}) {
    EXPECT_TRUE(contains(message, key)) << key << " in " << message;
  }
}

// Only what is missing is reported: extents that it would show come from other tensors.
TEST(SamLoad, ReportsMissingPositionsAlone) {
  SamTensors tensors = sam_tensors("padded_windows/model.pth");
  tensors.erase("image_encoder.pos_embed");
  const std::string message = testing::error_of([&] { load_sam(saved(tensors)); });
  EXPECT_TRUE(contains(message, "missing (1):\n    image_encoder.pos_embed [1, 10, 10, 32]")) << message;
  EXPECT_FALSE(contains(message, "misshapen")) << message;
}

// With the prompt encoder, the mask decoder has been lost.
TEST(SamLoad, NeedsAMaskDecoderUnlessItIsAnImageEncoderAlone) {
  SamTensors encoder = sam_tensors("windows/model.pth");
  std::erase_if(encoder, [](const auto& entry) { return entry.first.starts_with("mask_decoder."); });
  EXPECT_TRUE(contains(testing::error_of([&] { load_sam(saved(encoder)); }), "without a mask decoder"));
  std::erase_if(encoder, [](const auto& entry) { return entry.first.starts_with("prompt_encoder."); });
  const Sam sam = load_sam(saved(encoder));
  EXPECT_FALSE(sam.config().has_decoder);
  EXPECT_EQ(sam.config().encoder.norm_eps, kSamNormEps);
  EXPECT_EQ(sam.named_parameters().size(), encoder.size());
  SamTensors without_prefix;
  for (const auto& [name, tensor] : encoder) without_prefix[name.substr(name.find('.') + 1)] = tensor;
  EXPECT_EQ(load_sam(saved(without_prefix)).named_parameters().size(), encoder.size());
  without_prefix.erase("neck.1.bias");
  EXPECT_TRUE(contains(testing::error_of([&] { load_sam(saved(without_prefix)); }), "image_encoder.neck.1.bias"));
  const auto vit = testing::fixture("models/timm_distilled/model.safetensors");
  EXPECT_TRUE(contains(testing::error_of([&] { load_sam(vit); }), "without a mask decoder"));
}

// Shapes that would divide by zero or overflow.
TEST(SamLoad, RefusesShapesOfNoModel) {
  SamTensors tensors = sam_tensors("windows/model.pth");
  tensors["image_encoder.blocks.0.attn.rel_pos_h"] = Tensor::zeros({13, 7});
  testing::error_of([&] { load_sam(saved(tensors)); });
  tensors["image_encoder.blocks.0.attn.rel_pos_h"] = Tensor::zeros({13, 0});
  testing::error_of([&] { load_sam(saved(tensors)); });
  tensors = sam_tensors("windows/model.pth");
  tensors["mask_decoder.iou_token.weight"] = Tensor::zeros({1, 12});
  EXPECT_TRUE(contains(testing::error_of([&] { load_sam(saved(tensors)); }), "width"));
}

TEST(SamLoad, ReadsThePreprocessingFromConfigJson) {
  const auto folder = testing::scratch_folder();
  std::filesystem::copy_file(testing::fixture("sam/windows/model.pth"), folder / "model.pth");
  const auto preprocessing_with = [&](const std::string& config) {
    std::ofstream(folder / "config.json") << config;
    return load_sam(folder / "model.pth").config().preprocessing;
  };
  const std::string ours = R"({"architecture": "segment_anything")";
  EXPECT_EQ(preprocessing_with(ours + "}"), SamPreprocessing::segment_anything);
  EXPECT_EQ(preprocessing_with(ours + R"(, "preprocessing": "medsam"})"), SamPreprocessing::medsam);
  EXPECT_EQ(preprocessing_with(R"({"preprocessing": "medsam"})"), SamPreprocessing::segment_anything);
  const std::string error = testing::error_of([&] { preprocessing_with(ours + R"(, "preprocessing": "imagenet"})"); });
  EXPECT_TRUE(contains(
      error, "config.json: preprocessing: expected segment_anything, medsam or segment_anything_2, got 'imagenet'"))
      << error;
}

TEST(SamLoad, ReadsTheNormsEpsilonFromConfigJson) {
  const auto folder = testing::scratch_folder();
  std::filesystem::copy_file(testing::fixture("sam/windows/model.pth"), folder / "model.pth");
  const auto norm_eps_with = [&](const std::string& architecture, const std::string& value) {
    std::ofstream(folder / "config.json")
        << R"({"architecture": ")" + architecture + R"(", "norm_eps": )" + value + "}";
    return load_sam(folder / "model.pth").config().encoder.norm_eps;
  };
  EXPECT_EQ(norm_eps_with("segment_anything", "1e-5"), 1e-5);
  EXPECT_EQ(norm_eps_with("another", "1e-5"), kSamNormEps);
  for (const char* value : {"0", "-1e-6", "1", "1e300"}) {
    const std::string error = testing::error_of([&] { norm_eps_with("segment_anything", value); });
    EXPECT_TRUE(contains(error, "config.json: norm_eps: expected a number in (0, 1)")) << error;
  }
}

// Shapes do not show the number of the decoder's heads.
TEST(SamLoad, ReadsTheDecodersHeadsFromConfigJson) {
  const auto folder = testing::scratch_folder();
  std::filesystem::copy_file(testing::fixture("sam/transformers/model.safetensors"), folder / "model.safetensors");
  const auto heads_with = [&](const std::string& config) {
    std::ofstream(folder / "config.json") << config;
    return load_sam(folder).config().decoder.num_heads;
  };
  EXPECT_EQ(heads_with(R"({"mask_decoder_config": {"num_attention_heads": 4}})"), 4);
  EXPECT_EQ(heads_with(R"({"mask_decoder_config": {}})"), 8);
  EXPECT_TRUE(contains(testing::error_of([&] { heads_with(R"({"mask_decoder_config": {"num_attention_heads": 0}})"); }),
                       "0 heads divide"));
  EXPECT_TRUE(
      contains(testing::error_of([&] { heads_with(R"({"mask_decoder_config": {"num_attention_heads": "x"}})"); }),
               "config.json: mask_decoder_config: num_attention_heads"));
}

TEST(SamLoad, HqSamNeedsAGlobalBlock) {
  SamTensors tensors = sam_tensors("windows/model.pth");
  tensors["mask_decoder.hf_token.weight"] = Tensor::zeros({1, 16});
  EXPECT_TRUE(contains(testing::error_of([&] { load_sam(saved(tensors)); }), "a global block, which HQ-SAM reads"));
}

TEST(SamLoad, ReadsTheSizeOfMobileSamFromConfigJson) {
  EXPECT_EQ(load_sam(testing::fixture("sam/mobile/model.pth")).config().encoder.grid, 6);
  const auto path = saved(sam_tensors("mobile/model.pth"));
  EXPECT_EQ(load_sam(path).config().encoder.image_size(), 1024);
  std::ofstream(path.parent_path() / "config.json") << R"({"image_size": 100})";
  EXPECT_TRUE(contains(testing::error_of([&] { load_sam(path); }), "an image size that 16 divides, got 100"));
}

TEST(SamLoad, ReadsTheStagesOfMobileSamFromShapes) {
  const std::vector<SamTinyStage> stages = load_sam(testing::fixture("sam/mobile/model.pth")).config().encoder.stages;
  ASSERT_EQ(stages.size(), 4u);
  EXPECT_EQ(stages[0].hidden, 32);
  EXPECT_EQ(stages[2].depth, 2);
  EXPECT_EQ(stages[2].num_heads, 4);
  EXPECT_EQ(stages[1].window, 5);
  EXPECT_EQ(stages[1].stride, 2);
  EXPECT_EQ(stages[2].stride, 1);
  EXPECT_EQ(stages[3].out_dim, 0);
}

// Its convolutions then have biases instead of batch normalisation.
TEST(SamLoad, ReadsAMobileSamThatWasSaved) {
  const Sam sam = load_sam(testing::fixture("sam/mobile/model.pth"));
  SamTensors tensors;
  for (const nn::NamedTensor& parameter : sam.named_parameters()) tensors[parameter.name] = parameter.tensor;
  const auto path = saved(tensors);
  std::ofstream(path.parent_path() / "config.json") << R"({"image_size": 96})";
  const Sam again = load_sam(path);
  const Tensor image = Tensor::randn({1, 3, 96, 96}, 1);
  EXPECT_TRUE(testing::close(again.image_encoder().forward(image), sam.image_encoder().forward(image), 0));
}

TEST(SamLoad, RefusesShapesOfNoTinyViT) {
  const std::string attention = "image_encoder.layers.1.blocks.0.attn.";
  SamTensors tensors = sam_tensors("mobile/model.pth");
  tensors[attention + "attention_biases"] = Tensor::zeros({2, 24});
  EXPECT_TRUE(contains(testing::error_of([&] { load_sam(saved(tensors)); }), "2 heads, 24 biases"));
  tensors[attention + "attention_biases"] = Tensor::zeros({5, 25});
  EXPECT_TRUE(contains(testing::error_of([&] { load_sam(saved(tensors)); }), "width 24, 5 heads"));
  tensors = sam_tensors("mobile/model.pth");
  tensors.erase("image_encoder.layers.1.downsample.conv1.c.weight");
  EXPECT_TRUE(contains(testing::error_of([&] { load_sam(saved(tensors)); }), "all but the last merge patches"));
  tensors = sam_tensors("mobile/model.pth");
  tensors.erase("image_encoder.layers.1.blocks.0.local_conv.bn.running_var");
  EXPECT_TRUE(contains(testing::error_of([&] { load_sam(saved(tensors)); }), "local_conv.bn.running_var"));
}

// The digest is of the encoder alone: a decoder that was trained further has the same embeddings.
TEST(SamLoad, TheEncodersDigestIsThatOfItsTensors) {
  SamTensors tensors = sam_tensors("windows/model.pth");
  const std::string digest = sam_encoder_digest(testing::fixture("sam/windows/model.pth"));
  EXPECT_EQ(digest.size(), 64u);
  EXPECT_EQ(sam_encoder_digest(saved(tensors)), digest) << "in another format";
  tensors["mask_decoder.iou_token.weight"] = Tensor::zeros({1, 16});
  EXPECT_EQ(sam_encoder_digest(saved(tensors)), digest);
  Tensor& bias = tensors["image_encoder.blocks.1.norm1.bias"];
  bias = bias.clone();
  bias.narrow(0, 3, 1).copy_(Tensor::full({1}, 7));
  EXPECT_NE(sam_encoder_digest(saved(tensors)), digest);
  EXPECT_NE(sam_encoder_digest(testing::fixture("sam/global/model.pth")), digest);
}

// HQ-SAM's features of an image are made by layers that belong to its decoder.
TEST(SamLoad, TheEncodersDigestIncludesTheLayersOfHqSamsFeatures) {
  const SamTensors tensors = sam_tensors("high_quality/model.pth");
  const std::string digest = sam_encoder_digest(saved(tensors));
  for (const auto& [name, in_digest] :
       {std::pair("image_encoder.neck.0.weight", true), std::pair("mask_decoder.compress_vit_feat.0.bias", true),
        std::pair("mask_decoder.embedding_encoder.3.bias", true), std::pair("mask_decoder.hf_token.weight", false),
        std::pair("mask_decoder.hf_mlp.layers.0.bias", false)}) {
    SamTensors changed = tensors;
    ASSERT_TRUE(changed.contains(name)) << name;
    changed[name] = Tensor::full(tensors.at(name).shape(), 0.5);
    EXPECT_EQ(sam_encoder_digest(saved(changed)) != digest, in_digest) << name;
  }
}

// DistributedDataParallel and training scripts put prefixes in front of the names.
TEST(SamLoad, IgnoresPrefixesOfTrainingScripts) {
  SamTensors wrapped;
  for (const auto& [name, tensor] : sam_tensors("windows/model.pth")) wrapped["module.net." + name] = tensor;
  EXPECT_EQ(load_sam(saved(wrapped)).config().decoder.dim, 16);
}

}  // namespace
}  // namespace vitrail::models
