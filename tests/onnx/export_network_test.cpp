// SPDX-License-Identifier: Apache-2.0
// Graphs of depth estimators.  tests/python/onnx_maps_test.py compares what ONNX Runtime and OpenVINO compute.
#include "vitrail/onnx/export_network.h"

#include <gtest/gtest.h>

#include "tests/support/messages.h"
#include "tests/support/onnx_file.h"
#include "tests/support/paths.h"
#include "vitrail/models/depth/depth_estimator.h"

namespace vitrail::onnx {
namespace {

namespace fs = std::filesystem;
using testing::OnnxFile;
using Value = OnnxFile::Value;

models::DepthEstimator estimator(const std::string& name) {
  return models::load_depth_estimator(
      models::open_depth_estimator(testing::fixture("depth/" + name + "/config.json").parent_path()));
}

OnnxFile exported_depth(const models::DepthEstimator& model, const Shape& images, const OnnxOptions& options = {}) {
  const fs::path path = testing::scratch_folder() / "depth.onnx";
  export_network_onnx({.module = model,
                       .forward = [&](const auto& in) -> std::vector<nn::NamedTensor> {
                         return {{"depth", model.forward(in[0].tensor)}};
                       },
                       .inputs = {{"images", Tensor::empty(images, DType::f32, Device::meta)}},
                       .pixels = &model.config().preprocessing,
                       .metadata = {{"config.json", "{}"}}},
                      path, options);
  return testing::read_onnx(path);
}

TEST(NetworkOnnx, GraphsOfEachFixtureAreValid) {
  for (const char* name : {"relative", "metric", "dpt_vit", "dpt_dinov2", "dpt_beit"}) {
    SCOPED_TRACE(name);
    const models::DepthEstimator model = estimator(name);
    const auto [height, width] = model.config().resize.size;
    const OnnxFile graph = exported_depth(model, {1, 3, height, width});
    EXPECT_EQ(testing::graph_errors(graph), "");
    const std::string tall = std::to_string(height), wide = std::to_string(width);
    EXPECT_EQ(graph.inputs, (std::vector<Value>{{"images", 1, {"1", "3", tall, wide}}}));
    const Shape depth = model.forward(Tensor::empty({1, 3, height, width}, DType::f32, Device::meta)).shape();
    EXPECT_EQ(graph.outputs,
              (std::vector<Value>{{"depth", 1, {"1", std::to_string(depth[1]), std::to_string(depth[2])}}}));
    EXPECT_EQ(graph.count("Tanh"), model.config().metric ? 1 : 0);
    EXPECT_EQ(graph.metadata, (std::map<std::string, std::string>{{"config.json", "{}"}}));
  }
}

// Convolutions of maps as large as published models' are whole, though a session computes them a few rows at a time.
TEST(NetworkOnnx, LargeMapsHaveOneOperatorForAConvolution) {
  const models::DepthEstimator model = estimator("relative");
  const OnnxFile small = exported_depth(model, {1, 3, 98, 98}), large = exported_depth(model, {1, 3, 518, 518});
  EXPECT_EQ(large.count("Conv"), small.count("Conv"));
  EXPECT_EQ(large.count("Concat") - large.count("Resize"), small.count("Concat") - small.count("Resize"));
}

TEST(NetworkOnnx, ResizesCornersAsTheModelDoes) {
  int aligned = 0, half = 0;
  for (const OnnxFile::Node& node : exported_depth(estimator("metric"), {1, 3, 64, 88}).nodes) {
    if (node.op != "Resize") continue;
    const std::string& corners = node.texts.at("coordinate_transformation_mode");
    aligned += corners == "align_corners";
    half += corners == "half_pixel";
    EXPECT_EQ(node.texts.at("mode"), "linear");
  }
  EXPECT_GT(aligned, 0);
  EXPECT_EQ(half, 0) << "maps of the neck have the sizes that the fusion needs";
}

TEST(NetworkOnnx, OptionsChangeTheInput) {
  const models::DepthEstimator model = estimator("relative");
  const OnnxFile graph = exported_depth(model, {1, 3, 70, 98}, {.input = Input::uint8, .dynamic_batch = true});
  EXPECT_EQ(testing::graph_errors(graph), "");
  EXPECT_EQ(graph.inputs, (std::vector<Value>{{"images", 2, {"batch", "70", "98", "3"}}}));
  EXPECT_EQ(graph.outputs, (std::vector<Value>{{"depth", 1, {"batch", "70", "98"}}}));
  const std::string error = testing::error_of([&] { exported_depth(model, {1, 3, 70, 98}, {.opset = 16}); });
  EXPECT_TRUE(testing::contains(error, "an opset from 17 to 21")) << error;
}

}  // namespace
}  // namespace vitrail::onnx
