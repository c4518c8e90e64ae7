// SPDX-License-Identifier: Apache-2.0
// The graphs of SAM 2, run by an interpreter of their operators, against the predictor.
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/onnx_run.h"
#include "tests/support/paths.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/image/resize_internal.h"
#include "vitrail/onnx/export_sam.h"
#include "vitrail/sam/predictor.h"

namespace vitrail::onnx {
namespace {

using testing::OnnxArray;
using testing::OnnxFile;
using Inputs = std::map<std::string, OnnxArray>;

struct Sam2Graphs {
  OnnxFile encoder, decoder;
};

Sam2Graphs exported_sam2(const std::string& name, const SamOnnxOptions& options) {
  const auto path = testing::scratch_folder() / "sam2.onnx";
  export_sam_onnx(models::load_sam(testing::sam_fixture(name).model), path, options);
  const SamOnnxFiles files = sam_onnx_files(path);
  return {testing::read_onnx(files.encoder), testing::read_onnx(files.decoder)};
}

Tensor tensor_of_array(const OnnxArray& array) {
  return Tensor::from<float>(Shape(std::span<const int64_t>(array.shape)),
                             std::vector<float>(array.values.begin(), array.values.end()));
}

// A point and a box as inputs of the decoder, with the padding point that follows both, and without a mask.
Inputs prompt_inputs(const sam::Prompt& prompt, const sam::ImageEmbedding& embedding, double size, int64_t mask_size) {
  const double along = size / static_cast<double>(embedding.width), down = size / static_cast<double>(embedding.height);
  OnnxArray points{{1, 0, 2}, {}}, labels{{1, 0}, {}};
  const auto add = [&](double x, double y, double label) {
    points.values.insert(points.values.end(), {x * along, y * down});
    labels.values.push_back(label);
    ++points.shape[1];
    ++labels.shape[1];
  };
  for (const sam::Point& point : prompt.points) add(point.x, point.y, point.label);
  if (prompt.box) {
    add(prompt.box->x0, prompt.box->y0, 2);
    add(prompt.box->x1, prompt.box->y1, 3);
  }
  add(0, 0, -1);
  return {{"point_coords", points},
          {"point_labels", labels},
          {"mask_input",
           {{1, 1, mask_size, mask_size}, std::vector<double>(static_cast<size_t>(mask_size * mask_size), 0)}},
          {"has_mask_input", {{1}, {0}}},
          {"orig_im_size", {{2}, {static_cast<double>(embedding.height), static_cast<double>(embedding.width)}}}};
}

// In one of the fixtures a single mask is mask 0, in the other the best of three.
TEST(Sam2Onnx, GivesTheMasksOfThePredictor) {
  for (const char* name : {"sam2", "sam2_authors"}) {
    const testing::SamFixture fixture = testing::sam_fixture(name);
    const sam::Predictor predictor(fixture.model);
    const sam::ImageEmbedding embedding = predictor.embed(fixture.image);
    const int64_t size = predictor.image_size();
    const Sam2Graphs several = exported_sam2(name, {.file = {.input = Input::uint8}});
    const Sam2Graphs single = exported_sam2(name, {.single_mask = true});
    const image::Image square = image::resize(fixture.image, size, size, image::Filter::bilinear);
    const Inputs encoded = testing::run_onnx(
        several.encoder, {{"image", {{1, size, size, 3}, {square.pixels.begin(), square.pixels.end()}}}});
    ASSERT_EQ(encoded.size(), 3u);
    for (sam::Prompt prompt : {sam::Prompt{.points = {{20, 11, 1}}}, sam::Prompt{.box = sam::Box{5, 6, 40, 30}}}) {
      Inputs inputs = prompt_inputs(prompt, embedding, static_cast<double>(size), predictor.mask_size());
      inputs.insert(encoded.begin(), encoded.end());
      auto all = testing::run_onnx(several.decoder, inputs), one = testing::run_onnx(single.decoder, inputs);
      const sam::Masks want = predictor.predict(embedding, prompt);
      prompt.multimask = false;
      const sam::Masks chosen = predictor.predict(embedding, prompt);
      const double tolerance = testing::kSamTolerance * testing::largest(want.logits);
      EXPECT_TRUE(
          testing::close(tensor_of_array(all.at("low_res_masks")).select(0, 0).narrow(0, 1, 3), want.logits, tolerance))
          << name;
      EXPECT_TRUE(testing::close(tensor_of_array(one.at("low_res_masks")).select(0, 0), chosen.logits, tolerance))
          << name;
      EXPECT_NEAR(one.at("iou_predictions").values[0], chosen.iou[0], 1e-4) << name;
      const Tensor full = predictor.image_logits(chosen.logits.select(0, 0), embedding.width, embedding.height);
      EXPECT_TRUE(testing::close(tensor_of_array(one.at("masks")).select(0, 0).select(0, 0), full, tolerance)) << name;
    }
  }
}

TEST(Sam2Onnx, NamesItsFurtherMaps) {
  using Value = OnnxFile::Value;
  const Sam2Graphs graphs = exported_sam2("sam2", {});
  const std::vector<Value> maps{{"image_embeddings", 1, {"1", "16", "6", "6"}},
                                {"high_res_features_0", 1, {"1", "2", "24", "24"}},
                                {"high_res_features_1", 1, {"1", "4", "12", "12"}}};
  EXPECT_EQ(graphs.encoder.inputs, (std::vector<Value>{{"image", 1, {"1", "3", "96", "96"}}}));
  EXPECT_EQ(graphs.encoder.outputs, maps);
  ASSERT_EQ(graphs.decoder.inputs.size(), 8u);
  for (size_t i = 0; i < maps.size(); ++i) EXPECT_EQ(graphs.decoder.inputs[i], maps[i]);
}

}  // namespace
}  // namespace vitrail::onnx
