// SPDX-License-Identifier: Apache-2.0
// Texts and limits of the exports.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "tests/support/onnx_file.h"
#include "tests/support/onnx_run.h"
#include "tests/support/paths.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/models/text_tower.h"
#include "vitrail/onnx/export.h"
#include "vitrail/onnx/export_sam.h"
#include "vitrail/onnx/export_text.h"

namespace vitrail::onnx {
namespace {

namespace fs = std::filesystem;
using testing::error_of;

fs::path output() { return testing::scratch_folder() / "a.onnx"; }

models::SamConfig small_sam() {
  models::SamConfig config;
  config.encoder = {.grid = 3, .patch_size = 5, .dim = 6, .num_heads = 2, .head_dim = 3, .mlp_hidden = 7};
  config.encoder.blocks = {{.window = 2, .table_length = 3}, {.table_length = 5}};
  config.encoder.out_chans = 8;
  config.decoder = {.dim = 8, .num_heads = 2, .depth = 1, .cross_dim = 4, .mlp_hidden = 6};
  config.decoder.upscale_dims[0] = 5;
  config.decoder.upscale_dims[1] = 3;
  return config;
}

models::Sam sam_of(const models::SamConfig& config) {
  RandomParams params(1);
  return models::Sam(config, ParamSource(params));
}

// SamImageProcessor of transformers reads this text.
TEST(SamOnnxDetails, TheProcessorsConfigurationIsComplete) {
  const fs::path path = output();
  export_sam_onnx(sam_of(small_sam()), path);
  const SamOnnxFiles files = sam_onnx_files(path);
  for (const fs::path& file : {files.encoder, files.decoder}) {
    const testing::OnnxFile graph = testing::read_onnx(file);
    EXPECT_EQ(graph.metadata.size(), 1u);
    EXPECT_EQ(graph.metadata.at("preprocessor_config.json"),
              R"({"image_processor_type": "SamImageProcessor", "do_resize": true, "size": {"longest_edge": 15}, )"
              R"("resample": 2, "do_rescale": true, "rescale_factor": 0.00392157, "do_normalize": true, )"
              R"("image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "do_pad": true, )"
              R"("pad_size": {"height": 15, "width": 15}})");
  }
}

TEST(SamOnnxDetails, ImagesHaveThreeChannels) {
  models::SamConfig config = small_sam();
  config.encoder.in_chans = 4;
  const fs::path path = output();
  EXPECT_ERROR(error_of([&] { export_sam_onnx(sam_of(config), path); }), "ONNX", "4 channels");
  EXPECT_FALSE(fs::exists(sam_onnx_files(path).encoder));
  config = small_sam();
  config.preprocessing = models::SamPreprocessing::medsam;
  EXPECT_ERROR(error_of([&] { export_sam_onnx(sam_of(config), path); }), "ONNX", "medsam");
}

// The number of images is free, and each has its own embedding.
TEST(SamOnnxDetails, ABatchIsEncodedImageByImage) {
  models::SamConfig config = small_sam();
  config.decoder.high_quality = true;
  const models::Sam sam = sam_of(config);
  const fs::path path = output();
  export_sam_onnx(sam, path, {.file = {.dynamic_batch = true}});
  const testing::OnnxFile graph = testing::read_onnx(sam_onnx_files(path).encoder);
  using Value = testing::OnnxFile::Value;
  EXPECT_EQ(graph.inputs, (std::vector<Value>{{"image", 1, {"batch", "3", "15", "15"}}}));
  EXPECT_EQ(graph.outputs, (std::vector<Value>{{"image_embeddings", 1, {"batch", "8", "3", "3"}},
                                               {"interm_embeddings", 1, {"1", "batch", "3", "3", "6"}}}));
  const Tensor images = Tensor::randn({2, 3, 15, 15}, 4);
  const std::vector<double> values(images.data<float>(), images.data<float>() + images.numel());
  auto got = testing::run_onnx(graph, {{"image", {{2, 3, 15, 15}, values}}});
  const models::SamTrunk trunk = sam.image_encoder().trunk_outputs(images);
  const Tensor embedding = sam.image_encoder().neck(trunk.output).permute({0, 3, 1, 2}).contiguous();
  const auto same = [](const testing::OnnxArray& array, const Tensor& want) {
    ASSERT_EQ(array.values.size(), static_cast<size_t>(want.numel()));
    for (size_t i = 0; i < array.values.size(); ++i) EXPECT_NEAR(array.values[i], want.data<float>()[i], 1e-4) << i;
  };
  same(got.at("image_embeddings"), embedding);
  EXPECT_EQ(got.at("interm_embeddings").shape, (std::vector<int64_t>{1, 2, 3, 3, 6}));
  same(got.at("interm_embeddings"), trunk.intermediate.contiguous());
}

TEST(TextOnnxDetails, AClassTokenNeedsACausalMask) {
  const models::TextTransformerConfig config{.vocab_size = 9,
                                             .context_length = 4,
                                             .embed_dim = 6,
                                             .depth = 1,
                                             .num_heads = 2,
                                             .mlp_hidden = 7,
                                             .causal = false,
                                             .class_token = true,
                                             .output_dim = 5};
  RandomParams params(1);
  const models::TextTower tower{models::TextTransformer(config, ParamSource(params)), 1, 0};
  EXPECT_ERROR(error_of([&] { export_text_onnx(tower, output()); }), "no_causal_mask", "none");
}

TEST(OnnxDetails, ErrorsNameWhatIsExpected) {
  models::OpenedModel from = models::open_model(testing::model_fixture("timm_token"));
  const models::VisionTransformer model = models::build_model(from);
  const fs::path path = output();
  const auto error_with = [&](const OnnxOptions& options) {
    return error_of([&] { export_onnx(model, from.config, path, options); });
  };
  EXPECT_ERROR(error_with({.activations = {{"blocks.9.mlp.fc1", {}}}}), "ONNX", "blocks.9.mlp.fc1");
  EXPECT_ERROR(error_with({.opset = 16}), "ONNX", "16");
  EXPECT_ERROR(error_with({.opset = 22}), "ONNX", "22");
  from.config.preprocessing.std.reset();
  EXPECT_ERROR(error_with({.input = Input::uint8}), "ONNX", "none");
  EXPECT_FALSE(fs::exists(path));
}

TEST(OnnxDetails, TheModelsFilesAreInTheMetadata) {
  const models::OpenedModel from = models::open_model(testing::model_fixture("hf_vit"));
  const fs::path path = output();
  export_onnx(models::build_model(from), from.config, path);
  const testing::OnnxFile graph = testing::read_onnx(path);
  EXPECT_EQ(graph.metadata.at("config.json"), models::write_model_config(from.config));
  EXPECT_EQ(graph.metadata.at("preprocessor_config.json"),
            models::write_preprocessor_config(from.config.preprocessing));
}

}  // namespace
}  // namespace vitrail::onnx
