// SPDX-License-Identifier: Apache-2.0
// Files and errors of the export.  tests/python/onnx_test.py compares what ONNX Runtime computes from the files.
#include "vitrail/onnx/export.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <map>
#include <optional>
#include <tuple>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "tests/support/onnx_file.h"
#include "tests/support/paths.h"
#include "vitrail/infer/session.h"
#include "vitrail/nn/copied_params.h"
#include "vitrail/quantize/activation_scales.h"
#include "vitrail/quantize/rounding.h"

namespace vitrail::onnx {
namespace {

namespace fs = std::filesystem;

models::OpenedModel opened(const std::string& name) { return models::open_model(testing::model_fixture(name)); }

std::string exported(const models::OpenedModel& model, const OnnxOptions& options, const fs::path& file) {
  export_onnx(models::build_model(model), model.config, file, options);
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(OnnxExport, FileHasTheNamesOfTheModel) {
  const std::string content = exported(opened("timm_token"), {}, testing::scratch_folder() / "a.onnx");
  for (const char* name : {"vitrail", "images", "logits", "features", "blocks.1.mlp.fc1.weight", "config.json"})
    EXPECT_NE(content.find(name), std::string::npos) << name;
}

TEST(OnnxExport, InputsAndOutputsHaveTheShapesOfTheModel) {
  constexpr int64_t kFloat = 1, kUint8 = 2;
  using Value = testing::OnnxFile::Value;
  struct Case {
    const char* model;
    std::optional<std::array<int64_t, 2>> size;  // the preprocessing's, if it is not the model's own
    std::string channels, height, width;
  };
  for (const Case& one : {Case{"timm_non_square", {}, "3", "24", "16"},
                          {"timm_non_square", std::array<int64_t, 2>{16, 32}, "3", "16", "32"},
                          {"timm_gray", {}, "1", "16", "16"}}) {
    models::OpenedModel model = opened(one.model);
    if (one.size) model.config.preprocessing.input_size = one.size;
    for (const bool dynamic : {false, true}) {
      const std::string batch = dynamic ? "batch" : "1";
      for (const Input input : {Input::float32, Input::uint8}) {
        const fs::path file = testing::scratch_folder() / "a.onnx";
        exported(model, {.input = input, .dynamic_batch = dynamic}, file);
        const testing::OnnxFile graph = testing::read_onnx(file);
        const Value images = input == Input::uint8
                                 ? Value{"images", kUint8, {batch, one.height, one.width, one.channels}}
                                 : Value{"images", kFloat, {batch, one.channels, one.height, one.width}};
        EXPECT_EQ(graph.inputs, std::vector<Value>{images}) << one.model << batch;
        EXPECT_EQ(graph.outputs,
                  (std::vector<Value>{{"logits", kFloat, {batch, "10"}}, {"features", kFloat, {batch, "18"}}}))
            << one.model;
      }
    }
  }
}

// A head of classes has logits, a projection has none.  Only a processor of Hugging Face has a file of its own.
TEST(OnnxExport, OutputsAndMetadataAreThoseOfTheModelsKind) {
  using Names = std::vector<std::string>;
  for (const auto& [name, outputs, features, metadata] :
       {std::tuple{"timm_token", Names{"logits", "features"}, "18", Names{"config.json"}},
        {"timm_num_classes_0", Names{"features"}, "18", Names{"config.json"}},
        {"hf_clip", Names{"features"}, "10", Names{"config.json", "preprocessor_config.json"}},
        {"hf_vit", Names{"logits", "features"}, "18", Names{"config.json", "preprocessor_config.json"}}}) {
    const fs::path file = testing::scratch_folder() / "a.onnx";
    exported(opened(name), {}, file);
    const testing::OnnxFile graph = testing::read_onnx(file);
    Names got, keys;
    for (const auto& output : graph.outputs) got.push_back(output.name);
    for (const auto& [key, value] : graph.metadata) keys.push_back(key);
    EXPECT_EQ(got, outputs) << name;
    EXPECT_EQ(keys, metadata) << name;
    EXPECT_EQ(graph.outputs.back().shape, (Names{"1", features})) << name;
  }
}

TEST(OnnxExport, LargeWeightsGoToAFileBesideIt) {
  const fs::path folder = testing::scratch_folder();
  const models::OpenedModel model = opened("timm_token");
  const std::string all = exported(model, {}, folder / "inline.onnx");
  EXPECT_FALSE(fs::exists(folder / "inline.onnx.data"));
  const std::string graph = exported(model, {.inline_bytes = 1000}, folder / "outside.onnx");
  EXPECT_NE(graph.find("outside.onnx.data"), std::string::npos);
  const auto parameters = static_cast<uint64_t>(models::build_model(model).num_parameters());
  EXPECT_GE(fs::file_size(folder / "outside.onnx.data"), parameters * sizeof(float) / 2);
  EXPECT_LT(graph.size(), all.size() / 2);
}

TEST(OnnxExport, MergedTokensAreRefusedByName) {
  const models::OpenedModel from = opened("timm_token");
  models::VisionTransformer model = models::build_model(from);
  model.merge_tokens(2);
  const fs::path file = testing::scratch_folder() / "a.onnx";
  const std::string error = testing::error_of([&] { export_onnx(model, from.config, file); });
  EXPECT_TRUE(testing::contains(error, "merge_tokens")) << error;
  EXPECT_FALSE(fs::exists(file));
}

TEST(OnnxExport, PackedWeightsAreRefusedByName) {
  const models::OpenedModel from = opened("timm_token");
  const infer::Session session(models::build_model(from));
  session.program({1, 3, 32, 32});
  const fs::path file = testing::scratch_folder() / "a.onnx";
  const std::string error = testing::error_of([&] { export_onnx(session.model(), from.config, file); });
  EXPECT_TRUE(testing::contains(error, "patch_embed.proj.weight without data")) << error;
}

TEST(OnnxExport, UnknownOpsetIsRefused) {
  const models::OpenedModel from = opened("timm_token");
  for (const int opset : {16, 22}) {
    const fs::path file = testing::scratch_folder() / "a.onnx";
    const std::string error = testing::error_of([&] { exported(from, {.opset = opset}, file); });
    EXPECT_TRUE(testing::contains(error, "an opset from 17 to 21")) << error;
  }
}

// Both operands of every GEMM that has quantised activations are DequantizeLinear, the activations' after
// QuantizeLinear; no other node has them.
TEST(OnnxExport, QuantisedActivationsPrecedeTheirGemms) {
  for (const std::string fixture : {"timm_token", "timm_swiglu", "torch_encoder_post_norm", "timm_dinov3_qkvb"}) {
    const models::OpenedModel from = opened(fixture);
    const models::VisionTransformer model = models::build_model(from);
    OnnxOptions options;
    options.activations = quantize::activation_scales(model, {testing::input_of(fixture)}, DType::u8);
    const fs::path file = testing::scratch_folder() / "a.onnx";
    export_onnx(model, from.config, file, options);
    const testing::OnnxFile graph = testing::read_onnx(file);
    EXPECT_EQ(testing::graph_errors(graph), "") << fixture;
    std::map<std::string, testing::OnnxFile::Node> sources;
    for (const auto& node : graph.nodes) sources[node.output] = node;
    size_t gemms = 0;
    for (const auto& node : graph.nodes) {
      if (node.op != "MatMul" || sources[node.inputs[0]].op != "DequantizeLinear") continue;
      ++gemms;
      EXPECT_EQ(sources[sources[node.inputs[0]].inputs[0]].op, "QuantizeLinear") << fixture;
      const auto& weight = sources[node.inputs[1]];
      ASSERT_EQ(weight.op, "DequantizeLinear") << fixture;
      EXPECT_EQ(graph.constants.at(weight.inputs[0]).type, 3) << fixture;
      EXPECT_EQ(graph.constants.at(weight.inputs[1]).shape[0], graph.constants.at(weight.inputs[0]).shape[1]);
    }
    EXPECT_EQ(gemms, options.activations.size()) << fixture;
    EXPECT_EQ(graph.count("DequantizeLinear"), static_cast<int64_t>(2 * gemms)) << fixture;
  }
}

// The axes of ReduceMean are an attribute up to opset 17 and an input from 18 on.  onnx refuses an opset in a file of
// an older version of the format than the one that came with it: onnx.helper.OP_SET_ID_VERSION_MAP.
TEST(OnnxExport, FilesHaveTheFormOfTheirOpset) {
  constexpr int64_t kIrVersions[]{8, 8, 9, 9, 10};  // opsets 17 to 21
  for (int opset = 17; opset <= 21; ++opset) {
    const fs::path file = testing::scratch_folder() / "a.onnx";
    exported(opened("timm_avg"), {.opset = opset}, file);
    const testing::OnnxFile graph = testing::read_onnx(file);
    EXPECT_EQ(graph.opset, opset);
    EXPECT_EQ(graph.ir_version, kIrVersions[opset - 17]) << opset;
    EXPECT_EQ(graph.producer, "vitrail");
    ASSERT_GT(graph.count("ReduceMean"), 0);
    for (const auto& node : graph.nodes) {
      if (node.op == "ReduceMean") {
        EXPECT_EQ(node.inputs.size(), opset < 18 ? 1u : 2u) << opset;
      }
    }
  }
}

// A graph has one int8 value of a weight, which is that of the weight with its correction.
TEST(OnnxExport, QuantisedWeightsAreThoseWithTheirCorrection) {
  const models::OpenedModel from = opened("timm_token");
  const models::VisionTransformer model = models::build_model(from);
  const std::string layer = "blocks.0.mlp.fc1";
  const Tensor original = model.parameter(layer + ".weight");
  Tensor rounded = original.clone();
  for (int64_t i = 0; i < rounded.numel(); ++i) rounded.data<float>()[i] *= 0.5F;
  nn::CopiedParams params(model,
                          {{layer + ".weight", Tensor::from_quantized(quantize::with_correction(original, rounded))}});
  const models::VisionTransformer quantized(model.config(), ParamSource(params));
  OnnxOptions options;
  options.activations = {{layer, {DType::u8, 0.05F, 128}}};
  const fs::path file = testing::scratch_folder() / "a.onnx";
  export_onnx(quantized, from.config, file, options);
  const testing::OnnxFile graph = testing::read_onnx(file);
  const auto& values = graph.constants.at(layer + ".weight");
  const auto& scales = graph.constants.at(layer + ".weight_scale");
  const int64_t out = original.size(0), in = original.size(1);
  ASSERT_EQ(values.shape, (std::vector<int64_t>{in, out}));
  for (int64_t r = 0; r < out; ++r) {
    const double scale = scales.values[static_cast<size_t>(r)];
    for (int64_t c = 0; c < in; ++c) {
      EXPECT_NEAR(scale * values.values[static_cast<size_t>(c * out + r)], original.data<float>()[r * in + c], scale);
    }
  }
}

TEST(OnnxExport, ActivationsOfUnknownLayersAreRefused) {
  const models::OpenedModel from = opened("timm_token");
  const fs::path file = testing::scratch_folder() / "a.onnx";
  const std::string error = testing::error_of([&] {
    exported(from, {.activations = {{"blocks.9.mlp.fc1", {}}}}, file);
  });
  EXPECT_TRUE(testing::contains(error, "blocks.9.mlp.fc1")) << error;
  EXPECT_FALSE(fs::exists(file));
}

TEST(OnnxExport, PixelsNeedMeanAndStd) {
  models::OpenedModel from = opened("timm_token");
  from.config.preprocessing.mean.reset();
  const fs::path file = testing::scratch_folder() / "a.onnx";
  const std::string error = testing::error_of([&] { exported(from, {.input = Input::uint8}, file); });
  EXPECT_TRUE(testing::contains(error, "--mean")) << error;
  EXPECT_FALSE(fs::exists(file));
}

}  // namespace
}  // namespace vitrail::onnx
