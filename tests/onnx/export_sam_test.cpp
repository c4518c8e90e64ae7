// SPDX-License-Identifier: Apache-2.0
// Names, shapes and operators of Segment Anything's graphs.  tests/python/onnx_sam_test.py compares what ONNX Runtime
// and OpenVINO compute from them.
#include "vitrail/onnx/export_sam.h"

#include <gtest/gtest.h>

#include "tests/support/messages.h"
#include "tests/support/onnx_file.h"
#include "tests/support/paths.h"
#include "tests/support/sam_fixture.h"

namespace vitrail::onnx {
namespace {

namespace fs = std::filesystem;
using testing::OnnxFile;
using Value = OnnxFile::Value;

constexpr int64_t kFloat = 1, kUint8 = 2;

models::Sam fixture(const std::string& name) { return models::load_sam(testing::sam_fixture(name).model); }

struct Graphs {
  OnnxFile encoder, decoder;
};

Graphs exported(const models::Sam& sam, const SamOnnxOptions& options = {}) {
  const fs::path path = testing::scratch_folder() / "sam.onnx";
  export_sam_onnx(sam, path, options);
  EXPECT_FALSE(fs::exists(path));
  const SamOnnxFiles files = sam_onnx_files(path);
  return {testing::read_onnx(files.encoder), testing::read_onnx(files.decoder)};
}

std::string text(int64_t number) { return std::to_string(number); }

TEST(SamOnnx, FilesAreNamedAfterTheOutput) {
  const SamOnnxFiles files = sam_onnx_files("folder/sam.b.onnx");
  EXPECT_EQ(files.encoder, "folder/sam.b.encoder.onnx");
  EXPECT_EQ(files.decoder, "folder/sam.b.decoder.onnx");
}

TEST(SamOnnx, OfAnImageEncoderAloneIsOneFile) {
  const fs::path path = testing::scratch_folder() / "sam.onnx";
  const models::Sam sam = fixture("timm_encoder");
  export_sam_onnx(sam, path);
  const SamOnnxFiles files = sam_onnx_files(path);
  EXPECT_FALSE(fs::exists(files.decoder));
  const Value embeddings{"image_embeddings", kFloat, {"1", "16", "6", "6"}};
  EXPECT_EQ(testing::read_onnx(files.encoder).outputs, (std::vector<Value>{embeddings}));
}

TEST(SamOnnx, RefusesMedsam) {
  const std::string error = testing::error_of([] { exported(fixture("medsam")); });
  EXPECT_TRUE(testing::contains(error, "the preprocessing of Segment Anything or SAM 2, got medsam")) << error;
}

// Those of segment_anything's scripts/export_onnx_model.py.
TEST(SamOnnx, InputsAndOutputsAreTheReferences) {
  const models::Sam sam = fixture("padded_windows");
  const Graphs graphs = exported(sam);
  const std::string size = text(sam.config().encoder.image_size()), grid = text(sam.config().encoder.grid);
  const std::string channels = text(sam.config().decoder.dim), side = text(sam.config().mask_size());
  const Value embeddings{"image_embeddings", kFloat, {"1", channels, grid, grid}};
  EXPECT_EQ(graphs.encoder.inputs, (std::vector<Value>{{"image", kFloat, {"1", "3", size, size}}}));
  EXPECT_EQ(graphs.encoder.outputs, (std::vector<Value>{embeddings}));
  EXPECT_EQ(graphs.decoder.inputs, (std::vector<Value>{embeddings,
                                                       {"point_coords", kFloat, {"1", "num_points", "2"}},
                                                       {"point_labels", kFloat, {"1", "num_points"}},
                                                       {"mask_input", kFloat, {"1", "1", side, side}},
                                                       {"has_mask_input", kFloat, {"1"}},
                                                       {"orig_im_size", kFloat, {"2"}}}));
  EXPECT_EQ(graphs.decoder.outputs, (std::vector<Value>{{"masks", kFloat, {"1", "4", "height", "width"}},
                                                        {"iou_predictions", kFloat, {"1", "4"}},
                                                        {"low_res_masks", kFloat, {"1", "4", side, side}}}));
}

TEST(SamOnnx, OptionsChangeTheShapes) {
  const Graphs graphs = exported(fixture("padded_windows"),
                                 {.file = {.input = Input::uint8, .dynamic_batch = true}, .single_mask = true});
  EXPECT_EQ(graphs.encoder.inputs, (std::vector<Value>{{"image", kUint8, {"batch", "height", "width", "3"}}}));
  EXPECT_EQ(graphs.encoder.outputs[0].shape[0], "batch");
  EXPECT_EQ(graphs.decoder.inputs[0].shape[0], "1");
  EXPECT_EQ(graphs.decoder.outputs[0].shape[1], "1");
  EXPECT_EQ(graphs.decoder.count("ArgMax"), 1);
}

// 3×3 convolutions are Conv, and windows are padded between a linear layer's GEMM and its bias: no Sub takes the bias
// off again.
TEST(SamOnnx, GraphsAreValidAndHaveTheOperatorsOfTheLayers) {
  for (const char* name : {"padded_windows", "exact_windows", "global", "no_qkv_bias", "odd_width", "transformers"}) {
    const models::Sam sam = fixture(name);
    const Graphs graphs = exported(sam);
    SCOPED_TRACE(name);
    EXPECT_EQ(testing::graph_errors(graphs.encoder), "");
    EXPECT_EQ(testing::graph_errors(graphs.decoder), "");
    EXPECT_EQ(graphs.encoder.count("Conv"), 1);
    EXPECT_EQ(graphs.encoder.count("Sub"), 0);
    int64_t padded = 0;
    const models::SamEncoderConfig& config = sam.config().encoder;
    for (const auto& block : config.blocks) padded += block.window > 0 && config.grid % block.window != 0;
    EXPECT_EQ(graphs.encoder.count("Pad"), padded);
    EXPECT_EQ(graphs.encoder.count("Softmax"), static_cast<int64_t>(config.blocks.size()));
    EXPECT_EQ(graphs.decoder.count("Resize"), 2);
  }
}

TEST(SamOnnx, MobileSamHasItsConvolutions) {
  const models::Sam sam = fixture("mobile");
  const Graphs graphs = exported(sam);
  EXPECT_EQ(testing::graph_errors(graphs.encoder), "");
  EXPECT_EQ(testing::graph_errors(graphs.decoder), "");
  int64_t convolutions = 2 + 1;  // the stem and the neck
  for (size_t i = 0; i < sam.config().encoder.stages.size(); ++i) {
    const models::SamTinyStage& stage = sam.config().encoder.stages[i];
    convolutions += stage.depth + (stage.out_dim > 0 ? 1 : 0);
  }
  EXPECT_EQ(graphs.encoder.count("Conv"), convolutions);
}

TEST(SamOnnx, MetadataIsThatOfTheProcessor) {
  const models::Sam sam = fixture("padded_windows");
  for (const OnnxFile& file : {exported(sam).encoder, exported(sam).decoder}) {
    const std::string processor = file.metadata.at("preprocessor_config.json");
    EXPECT_TRUE(testing::contains(processor, "\"longest_edge\": " + text(sam.config().encoder.image_size())));
  }
}

TEST(SamOnnx, HighQualityDecodersTakeTheFeaturesOfABlock) {
  for (const char* name : {"high_quality", "mobile_high_quality"}) {
    SCOPED_TRACE(name);
    const models::Sam sam = fixture(name);
    const Graphs graphs = exported(sam);
    EXPECT_EQ(testing::graph_errors(graphs.encoder), "");
    EXPECT_EQ(testing::graph_errors(graphs.decoder), "");
    const std::string grid = text(sam.config().encoder.grid);
    const std::string width = text(sam.mask_decoder().hq_head()->intermediate_width());
    const Value features{"interm_embeddings", kFloat, {"1", "1", grid, grid, width}};
    EXPECT_EQ(graphs.encoder.outputs.at(1), features);
    EXPECT_EQ(graphs.decoder.inputs.at(1), features);
    EXPECT_EQ(graphs.decoder.count("Conv"), 2);
  }
}

TEST(SamOnnx, UnknownOpsetIsRefused) {
  const models::Sam sam = fixture("padded_windows");
  const std::string error =
      testing::error_of([&] { export_sam_onnx(sam, testing::scratch_folder() / "sam.onnx", {.file = {.opset = 16}}); });
  EXPECT_TRUE(testing::contains(error, "an opset from 17 to 21")) << error;
}

TEST(SamOnnx, WithoutTheDecoderThereIsNoEncoder) {
  const fs::path path = testing::scratch_folder() / "sam.onnx";
  const SamOnnxFiles files = sam_onnx_files(path);
  fs::create_directory(files.decoder);
  const std::string error = testing::error_of([&] { export_sam_onnx(fixture("padded_windows"), path); });
  EXPECT_TRUE(testing::contains(error, "a file to write, got a folder")) << error;
  EXPECT_FALSE(fs::exists(files.encoder));
}

// On a grid of published models' kind, attention of few tokens has a form of its own that depends on their number.
TEST(SamOnnx, ADecoderOfManyCellsTakesAnyNumberOfPoints) {
  models::SamConfig config;
  config.encoder = {.grid = 10, .dim = 16, .num_heads = 2, .head_dim = 8, .mlp_hidden = 16, .out_chans = 32};
  config.encoder.blocks = {{.table_length = 19}};
  config.decoder = {.dim = 32, .num_heads = 2, .cross_dim = 16, .mlp_hidden = 16, .upscale_dims = {8, 4}};
  RandomParams random(1);
  const Graphs graphs = exported(models::Sam(config, ParamSource(random)));
  EXPECT_EQ(graphs.decoder.inputs.at(1), (Value{"point_coords", kFloat, {"1", "num_points", "2"}}));
}

// The neck's convolution of a map as large as published models' is whole.
TEST(SamOnnx, AnEncoderOfPublishedSizeIsExported) {
  models::SamConfig config;
  config.encoder = {.grid = 64, .dim = 16, .num_heads = 2, .head_dim = 8, .mlp_hidden = 16, .out_chans = 256};
  config.encoder.blocks = {{.table_length = 127}};
  config.has_decoder = false;
  RandomParams random(1);
  const fs::path path = testing::scratch_folder() / "sam.onnx";
  export_sam_onnx(models::Sam(config, ParamSource(random)), path);
  EXPECT_EQ(testing::read_onnx(sam_onnx_files(path).encoder).count("Conv"), 1);
}

}  // namespace
}  // namespace vitrail::onnx
