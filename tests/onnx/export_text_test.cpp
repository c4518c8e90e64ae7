// SPDX-License-Identifier: Apache-2.0
// Names, shapes and operators of text towers.  tests/python/onnx_text_test.py compares what ONNX Runtime and OpenVINO
// compute from them.
#include "vitrail/onnx/export_text.h"

#include <gtest/gtest.h>

#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "tests/support/onnx_file.h"
#include "tests/support/paths.h"
#include "vitrail/models/text_tower.h"

namespace vitrail::onnx {
namespace {

using Value = testing::OnnxFile::Value;

testing::OnnxFile exported(const models::TextTower& tower, const OnnxOptions& options) {
  const std::filesystem::path path = testing::scratch_folder() / "clip.onnx";
  export_text_onnx(tower, path, options);
  EXPECT_EQ(text_onnx_file(path).filename(), "clip.text.onnx");
  return testing::read_onnx(text_onnx_file(path));
}

TEST(TextOnnx, GraphsAreValidAndTakeTextsOfTheContextsLength) {
  constexpr int64_t kFloat = 1, kInt64 = 7;
  for (const char* name : {"hf_clip", "hf_clip_old_eos", "hf_siglip", "open_clip_coca"}) {
    SCOPED_TRACE(name);
    models::TextTower tower = models::build_text_tower(models::open_model(testing::model_fixture(name)));
    tower.logit_scale = 4.605170249938965;  // a float whose decimal form needs 16 digits
    tower.logit_bias = -1.0 / 3;
    const models::TextTransformerConfig& config = tower.model.config();
    for (const bool dynamic : {false, true}) {
      const testing::OnnxFile file = exported(tower, {.dynamic_batch = dynamic});
      const std::string batch = dynamic ? "batch" : "1";
      EXPECT_EQ(testing::graph_errors(file), "");
      EXPECT_EQ(file.inputs,
                (std::vector<Value>{{"input_ids", kInt64, {batch, std::to_string(config.context_length)}}}));
      EXPECT_EQ(file.outputs,
                (std::vector<Value>{{"text_embeds", kFloat, {batch, std::to_string(config.output_dim)}}}));
      EXPECT_EQ(file.count("ArgMax"), config.pool == models::TextPool::last ? 0 : 1);
      EXPECT_EQ(std::stod(file.metadata.at("logit_scale")), tower.logit_scale);
      EXPECT_EQ(std::stod(file.metadata.at("logit_bias")), tower.logit_bias);
    }
  }
}

TEST(TextOnnx, OfADualModelIsWrittenTogetherWithTheImageTower) {
  const models::OpenedModel opened = models::open_model(testing::model_fixture("hf_clip"));
  const models::VisionTransformer images = models::build_model(opened);
  const models::TextTower texts = models::build_text_tower(opened);
  const std::filesystem::path path = testing::scratch_folder() / "clip.onnx", text = text_onnx_file(path);
  const auto write = [&] { export_dual_onnx(images, opened.config, texts, path); };
  std::filesystem::create_directory(text);
  const std::string error = testing::error_of(write);
  EXPECT_TRUE(testing::contains(error, "a file to write, got a folder")) << error;
  EXPECT_FALSE(std::filesystem::exists(path));
  std::filesystem::remove(text);
  write();
  EXPECT_EQ(testing::read_onnx(path).inputs[0].name, "images");
  EXPECT_EQ(testing::read_onnx(text).inputs[0].name, "input_ids");
}

TEST(TextOnnx, OnlyDualModelsHaveATextTower) {
  EXPECT_TRUE(models::has_text_tower(models::open_model(testing::model_fixture("hf_clip"))));
  EXPECT_FALSE(models::has_text_tower(models::open_model(testing::model_fixture("hf_clip_vision"))));
}

}  // namespace
}  // namespace vitrail::onnx
