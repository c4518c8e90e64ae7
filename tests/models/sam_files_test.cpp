// SPDX-License-Identifier: Apache-2.0
// Files of Segment Anything: which model they are of, their settings, and their digests.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <span>

#include "tests/models/support.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/crc32c_internal.h"
#include "vitrail/base/digest_internal.h"
#include "vitrail/models/load.h"
#include "vitrail/models/sam/sam.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using testing::error_of;

fs::path file_of(const std::string& name) { return testing::fixture("sam/" + name); }

std::string sha256_of(const std::string& text) { return sha256(std::as_bytes(std::span(text))); }

TEST(SamFiles, KeyMapsAreChosenByTheNames) {
  const auto name = [](const fs::path& path) { return sam_key_map(*ModelFiles(path).checkpoint()).name(); };
  EXPECT_EQ(name(file_of("windows/model.pth")), "sam");
  EXPECT_EQ(name(file_of("high_quality/model.pth")), "sam");
  EXPECT_EQ(name(file_of("transformers/model.safetensors")), "huggingface_sam");
  EXPECT_EQ(name(file_of("mobile/model.pth")), "mobile_sam");
  EXPECT_EQ(name(file_of("timm_encoder/model.safetensors")), "timm_sam");
  SamTensors encoder;
  for (const auto& [key, tensor] : sam_tensors("windows/model.pth")) {
    if (key.starts_with("image_encoder.")) encoder[key.substr(14)] = tensor;
  }
  EXPECT_EQ(name(saved(encoder)), "sam_encoder");
}

TEST(SamFiles, AreKnownByTheirDecoderOrTheirEncoder) {
  const auto known = [](const std::vector<std::string>& names) {
    SamTensors tensors;
    for (const std::string& name : names) tensors[name] = Tensor::zeros({1, 2});
    return is_segment_anything(saved(tensors));
  };
  EXPECT_TRUE(known({"mask_decoder.iou_token.weight"}));
  EXPECT_TRUE(known({"module.mask_decoder.iou_token.weight", "other"}));
  EXPECT_FALSE(known({"mask_decoder.iou_token.weight.more"}));
  EXPECT_FALSE(known({"mask_decoder.mask_tokens.weight"}));
  EXPECT_TRUE(known({"image_encoder.blocks.0.attn.rel_pos_h", "image_encoder.neck.2.weight"}));
  EXPECT_FALSE(known({"blocks.0.attn.rel_pos_h"}));
  EXPECT_FALSE(known({"neck.2.weight"}));
  EXPECT_FALSE(known({"blocks.1.attn.rel_pos_h", "neck.2.weight"}));
  EXPECT_FALSE(is_segment_anything(testing::fixture("models/timm_distilled/model.safetensors")));
}

// A setting of config.json is that of the model which has it.
TEST(SamFiles, SettingsAreThoseOfTheirModel) {
  const SamTensors windows = sam_tensors("windows/model.pth");
  const std::string ours = R"({"architecture": "segment_anything", "image_size": 96, "preprocessing": "medsam",
                               "norm_eps": 1e-4, "mask_decoder_config": {"num_attention_heads": 4}})";
  const SamConfig config = load_sam(saved(windows, ours)).config();
  EXPECT_EQ(config.preprocessing, SamPreprocessing::medsam);
  EXPECT_EQ(config.encoder.norm_eps, 1e-4);
  EXPECT_EQ(config.decoder.num_heads, 8);
  EXPECT_NE(config.encoder.image_size(), 96);
  const fs::path path = saved(windows, ours);
  EXPECT_EQ(load_sam(path, {.preprocessing = SamPreprocessing::segment_anything}).config().preprocessing,
            SamPreprocessing::segment_anything)
      << "an option goes before the file";
  EXPECT_EQ(load_sam(saved(windows), {.preprocessing = SamPreprocessing::medsam}).config().preprocessing,
            SamPreprocessing::medsam);
  const SamConfig mobile = load_sam(saved(sam_tensors("mobile/model.pth"), ours)).config();
  EXPECT_EQ(mobile.encoder.image_size(), 96);
  EXPECT_EQ(mobile.decoder.num_heads, 8);
  const SamConfig transformers = load_sam(saved(sam_tensors("transformers/model.safetensors"), ours)).config();
  EXPECT_EQ(transformers.decoder.num_heads, 4);
  EXPECT_NE(transformers.encoder.image_size(), 96);
  // Those of timm have an ε of their own.
  const SamConfig timm = load_sam(saved(sam_tensors("timm_encoder/model.safetensors"), ours)).config();
  EXPECT_EQ(timm.encoder.norm_eps, 1e-5);
  EXPECT_EQ(timm.preprocessing, SamPreprocessing::medsam);
}

// What transformers' files may change, with the names and defaults of its classes.
TEST(SamFiles, TransformersHasItsOwnNames) {
  const SamTensors tensors = sam_tensors("transformers/model.safetensors");
  const auto load = [&](const std::string& vision, const std::string& other = "") {
    return load_sam(saved(tensors, "{\"vision_config\": {" + vision + "}" + other + "}"));
  };
  EXPECT_EQ(load(R"("layer_norm_eps": 1e-4, "hidden_act": "gelu")").config().encoder.norm_eps, 1e-4);
  EXPECT_EQ(load("").config().encoder.norm_eps, 1e-6);
  const std::vector<SamBlockConfig> blocks = load("").config().encoder.blocks;
  const int64_t grid = load("").config().encoder.grid;
  const auto windows = [&](const std::string& vision) {
    std::vector<int64_t> sizes;
    const SamConfig config = load(vision).config();
    for (const SamBlockConfig& block : config.encoder.blocks) sizes.push_back(block.window);
    return sizes;
  };
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].window > 0) continue;
    EXPECT_EQ(windows(R"("global_attn_indexes": [])")[i], grid);
    EXPECT_EQ(windows(R"("global_attn_indexes": [], "window_size": 0)")[i], 0) << "no windows";
    EXPECT_EQ(windows(str("\"global_attn_indexes\": [", i, "], \"window_size\": 14"))[i], 0);
  }
  const auto error = [&](const std::string& vision, const std::string& other = "") {
    const std::string message = error_of([&] { load(vision, other); });
    return message.substr(std::min(message.size(), message.find("config.json")));
  };
  EXPECT_EQ(error(R"("hidden_act": "relu")"), R"(config.json: vision_config: hidden_act: expected "gelu", got "relu")");
  EXPECT_EQ(error("", R"(, "prompt_encoder_config": {"hidden_act": "relu"})"),
            R"(config.json: prompt_encoder_config: hidden_act: expected "gelu", got "relu")");
  EXPECT_EQ(error("", R"(, "mask_decoder_config": {"hidden_act": "gelu"})"),
            R"(config.json: mask_decoder_config: hidden_act: expected "relu", got "gelu")");
  EXPECT_ERROR(error(R"("layer_norm_eps": 2)"), "config.json: vision_config: layer_norm_eps", "2");
  EXPECT_ERROR(error(R"("global_attn_indexes": [0.5])"), "config.json: vision_config: global_attn_indexes", "[0.5]");
}

// Its processor's mean, standard deviation and steps are fixed here.
TEST(SamFiles, TransformersProcessorIsThatOfSegmentAnything) {
  const fs::path path = saved(sam_tensors("transformers/model.safetensors"));
  const auto error = [&](const std::string& fields, const SamLoadOptions& options = {}) {
    std::ofstream(path.parent_path() / "preprocessor_config.json") << "{" << fields << "}";
    const std::string message = error_of([&] { load_sam(path, options); });
    return message.substr(std::min(message.size(), message.find("preprocessor_config.json")));
  };
  const auto loads = [&](const std::string& fields) {
    std::ofstream(path.parent_path() / "preprocessor_config.json") << "{" << fields << "}";
    EXPECT_NO_THROW(load_sam(path)) << fields;
  };
  // SamImageProcessor().save_pretrained() of transformers 5.24 writes these values.
  loads(R"("do_normalize": true, "do_pad": true, "do_rescale": true, "do_resize": true, "resample": 2,
           "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225],
           "rescale_factor": 0.00392156862745098)");
  EXPECT_ERROR(error(R"("image_mean": [0.5, 0.5, 0.5])"), "preprocessor_config.json: image_mean", "[0.5,0.5,0.5]");
  EXPECT_ERROR(error(R"("image_std": [0.5, 0.5, 0.5])"), "preprocessor_config.json: image_std", "[0.5,0.5,0.5]");
  EXPECT_ERROR(error(R"("rescale_factor": 1)"), "preprocessor_config.json: rescale_factor", "1");
  EXPECT_ERROR(error(R"("do_normalize": false)"), "preprocessor_config.json: do_normalize", "false");
  std::ofstream(path.parent_path() / "preprocessor_config.json") << R"({"image_mean": [0.5, 0.5, 0.5]})";
  EXPECT_NO_THROW(load_sam(path, {.preprocessing = SamPreprocessing::medsam})) << "which has no mean";
}

// Some programs save the buffers that hold the statistics of images.
TEST(SamFiles, StatisticsBesideTheWeightsAreThoseOfSegmentAnything) {
  const auto with = [](const std::string& model, std::vector<float> mean, std::vector<float> std, DType dtype) {
    SamTensors tensors = sam_tensors(model);
    const auto buffer = [&](const std::vector<float>& values) {
      return Tensor::from<float>({static_cast<int64_t>(values.size()), 1, 1}, values).to(dtype);
    };
    tensors["pixel_mean"] = buffer(mean);
    tensors["pixel_std"] = buffer(std);
    return saved(tensors, R"({"image_size": 96})");
  };
  const std::vector<float> mean{123.675f, 116.28f, 103.53f}, std{58.395f, 57.12f, 57.375f};
  for (const char* model : {"windows/model.pth", "high_quality/model.pth", "mobile/model.pth"}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      const fs::path path = with(model, mean, std, dtype);
      EXPECT_EQ(load_sam(path).named_parameters().size(), load_sam(file_of(model)).named_parameters().size()) << model;
      EXPECT_EQ(sam_encoder_digest(path), sam_encoder_digest(file_of(model))) << model;
    }
  }
  const auto error = [](const fs::path& path) {
    const std::string message = error_of([&] { load_sam(path); });
    return message.substr(std::min(message.size(), path.string().size() + 2));
  };
  const std::string windows = "windows/model.pth";
  EXPECT_ERROR(error(with(windows, {127.5f, 127.5f, 127.5f}, std, DType::f32)), "pixel_mean", "127.5, 127.5, 127.5");
  EXPECT_ERROR(error(with(windows, mean, {58.395f, 57.12f, 60}, DType::f32)), "pixel_std", "58.395, 57.12, 60");
  EXPECT_ERROR(error(with(windows, {0}, std, DType::f32)), "pixel_mean", "0");
  const fs::path other = with(windows, {0, 0, 0}, {1, 1, 1}, DType::f32);
  EXPECT_NO_THROW(load_sam(other, {.preprocessing = SamPreprocessing::medsam})) << "which has no mean";
}

// Tables of embeddings name the model by this text, which therefore stays as it is.
TEST(SamFiles, ADigestIsThatOfALineForEachTensor) {
  const SamTensors tensors{{"image_encoder.neck.0.weight", Tensor::from<float>({2, 1, 1, 1}, {1, 2})},
                           {"image_encoder.blocks.0.attn.rel_pos_h", Tensor::from<float>({1, 2}, {3, 4})},
                           {"mask_decoder.iou_token.weight", Tensor::from<float>({1, 2}, {5, 6})},
                           {"mask_decoder.embedding_encoder.0.bias", Tensor::from<float>({2}, {7, 8})}};
  std::string text;
  for (const auto& [name, shape] :
       {std::pair<std::string, std::string>{"image_encoder.blocks.0.attn.rel_pos_h", "[1, 2]"},
        {"image_encoder.neck.0.weight", "[2, 1, 1, 1]"},
        {"mask_decoder.embedding_encoder.0.bias", "[2]"}}) {
    text += name + " f32 " + shape + " " + std::to_string(crc32c(tensors.at(name).raw(), 8)) + "\n";
  }
  EXPECT_EQ(sam_encoder_digest(saved(tensors)), sha256_of(text));
}

// Settings other than Segment Anything's are part of the digest.
TEST(SamFiles, DigestsIncludeOtherSettings) {
  const SamTensors tensors = sam_tensors("windows/model.pth");
  const std::string digest = sam_encoder_digest(saved(tensors));
  const SamLoadOptions medsam{.preprocessing = SamPreprocessing::medsam};
  EXPECT_EQ(sam_encoder_digest(saved(tensors), medsam), sha256_of(digest + "medsam"));
  const std::string config = R"({"architecture": "segment_anything", "norm_eps": 1e-5})";
  EXPECT_EQ(sam_encoder_digest(saved(tensors, config)), sha256_of(digest + "1e-05"));
  EXPECT_EQ(sam_encoder_digest(saved(tensors, config), medsam), sha256_of(digest + "medsam1e-05"));

  const std::string trunk = sam_trunk_digest(load_sam(saved(tensors)));
  EXPECT_NE(trunk, digest);
  EXPECT_EQ(sam_trunk_digest(load_sam(saved(tensors), medsam)), sha256_of(trunk + "medsam"));
  EXPECT_EQ(sam_trunk_digest(load_sam(saved(tensors, config), medsam)), sha256_of(trunk + "medsam1e-05"));
}

TEST(SamFiles, ErrorsNameTheSetting) {
  const SamTensors tensors = sam_tensors("windows/model.pth");
  const auto error_with = [&](const std::string& settings) {
    const fs::path path = saved(tensors, R"({"architecture": "segment_anything", )" + settings + "}");
    const std::string error = error_of([&] { load_sam(path); });
    const std::string folder = path.parent_path().string() + "/";
    EXPECT_TRUE(error.starts_with(folder)) << error;
    return error.substr(std::min(error.size(), folder.size()));
  };
  EXPECT_ERROR(error_with(R"("preprocessing": "imagenet")"), "config.json: preprocessing", "'imagenet'");
  EXPECT_ERROR(error_with(R"("norm_eps": 1)"), "config.json: norm_eps", "1");
  EXPECT_ERROR(error_with(R"("norm_eps": 0)"), "config.json: norm_eps", "0");
}

// The extents that all published models share.
TEST(SamArchitectures, ShareTheirDecoder) {
  const SamConfig config;
  const SamEncoderConfig& encoder = config.encoder;
  EXPECT_EQ(encoder.grid, 64);
  EXPECT_EQ(encoder.patch_size, 16);
  EXPECT_EQ(encoder.out_chans, 256);
  const SamDecoderConfig& decoder = config.decoder;
  EXPECT_EQ(decoder.dim, 256);
  EXPECT_EQ(decoder.num_heads, 8);
  EXPECT_EQ(decoder.depth, 2);
  EXPECT_EQ(decoder.cross_dim, 128);
  EXPECT_EQ(decoder.mlp_hidden, 2048);
  EXPECT_EQ(decoder.mask_tokens, 4);
  EXPECT_EQ(decoder.upscale_dims[0], 64);
  EXPECT_EQ(decoder.upscale_dims[1], 32);
  EXPECT_EQ(decoder.iou_hidden, 256);
  EXPECT_EQ(decoder.mask_chans[0], 4);
  EXPECT_EQ(decoder.mask_chans[1], 16);
  EXPECT_FALSE(decoder.high_quality);
  EXPECT_TRUE(config.has_decoder);
  EXPECT_EQ(config.mask_size(), 256);
  EXPECT_EQ(encoder.image_size(), 1024);
}

}  // namespace
}  // namespace vitrail::models
