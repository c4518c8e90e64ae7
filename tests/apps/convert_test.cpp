// SPDX-License-Identifier: Apache-2.0
// What convert writes: ONNX files of each kind of model, folders of Segment Anything, and what it refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "tests/support/onnx_file.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/base/npy.h"
#include "vitrail/models/sam/sam.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kInt8 = 3;

std::set<std::string> files_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) names.insert(entry.path().filename().string());
  return names;
}

void expect_refusal(const Arguments& arguments, int status, const std::string& message) {
  const fs::path folder = scratch_folder();
  const ProgramResult result = run_program(Arguments{"convert", "-o", folder / "m.onnx"} + arguments);
  EXPECT_EQ(result.status, status);
  EXPECT_TRUE(contains(result.err, message)) << result.err;
  EXPECT_EQ(files_in(folder), std::set<std::string>{});
}

std::set<std::string> files_of(const fs::path& model) {
  const fs::path folder = scratch_folder();
  const ProgramResult result = run_program({"convert", model, "-o", folder / "m.onnx"});
  EXPECT_EQ(result.status, 0) << result.err;
  const std::set<std::string> files = files_in(folder);
  for (const std::string& file : files) EXPECT_TRUE(contains(result.err, file)) << result.err;
  return files;
}

TEST(ConvertToOnnx, WritesAFileForEachPartOfAModel) {
  using Files = std::set<std::string>;
  EXPECT_EQ(files_of(model_fixture("timm_token")), Files{"m.onnx"});
  EXPECT_EQ(files_of(model_fixture("hf_clip")), (Files{"m.onnx", "m.text.onnx"}));
  EXPECT_EQ(files_of(model_fixture("hf_clip_vision")), Files{"m.onnx"});
  EXPECT_EQ(files_of(sam_fixture("mobile").model), (Files{"m.decoder.onnx", "m.encoder.onnx"}));
}

// Official keys, those of transformers, MobileSAM with its batch norms folded, HQ-SAM.
TEST(ConvertToFolder, ASegmentationModelGivesTheSameMasks) {
  const fs::path folder = scratch_folder(), image = image_folder(1) / "a.png";
  const auto logits_of = [&](const fs::path& model, const std::string& name) {
    const ProgramResult result =
        run_program({"segment", "-m", model, image, "--point", "3,4", "--logits", folder / name, "--format", "json"});
    EXPECT_EQ(result.status, 0) << result.err;
    return read_npy(folder / name).f32;
  };
  for (const std::string name : {"padded_windows", "transformers_high_quality", "mobile", "high_quality"}) {
    const fs::path model = sam_fixture(name).model;
    const std::vector<float> want = logits_of(model, "want.npy");
    const float largest = std::ranges::max(want);
    for (const std::string dtype : {"fp32", "fp16"}) {
      const fs::path copy = folder / (name + dtype);
      const ProgramResult result = run_program({"convert", model, "-o", copy, "--dtype", dtype});
      ASSERT_EQ(result.status, 0) << result.err;
      const std::vector<float> got = logits_of(copy, "got.npy");
      ASSERT_EQ(got.size(), want.size());
      // Weights in fp16 are rounded to 2⁻¹¹; the errors of some twenty layers in a row add.
      const float tolerance = dtype == "fp32" ? 0 : 20.0f / 2048;
      for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance * largest) << name;
    }
  }
  const fs::path encoder = sam_fixture("timm_encoder").model;  // config.json has the ε of its layer norms
  ASSERT_EQ(run_program({"convert", encoder, "-o", folder / "encoder"}).status, 0);
  for (const auto& [from, to] : {std::pair(encoder, "a.npy"), std::pair(folder / "encoder", "b.npy")})
    EXPECT_EQ(run_program({"segment", "-m", from, image, "--embedding", folder / to}).status, 0);
  EXPECT_EQ(read_npy(folder / "a.npy").f32, read_npy(folder / "b.npy").f32);
  const fs::path model = sam_fixture("windows").model, medsam = folder / "medsam";
  ASSERT_EQ(run_program({"convert", model, "-o", medsam, "--preset", "medsam"}).status, 0);
  const models::SamPreprocessing preprocessing = models::load_sam(medsam).config().preprocessing;
  EXPECT_EQ(preprocessing, models::SamPreprocessing::medsam);
  const ProgramResult unknown = run_program({"convert", model, "-o", folder / "other", "--preset", "inception"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_TRUE(
      contains(unknown.err, "--preset: expected segment_anything, medsam or segment_anything_2, got 'inception'"))
      << unknown.err;
  const auto bytes = [&](const char* model) { return fs::file_size(folder / model / "model.safetensors"); };
  EXPECT_LT(bytes("padded_windowsfp16"), 0.6 * static_cast<double>(bytes("padded_windowsfp32")));
  const ProgramResult refused =
      run_program({"convert", sam_fixture("windows").model, "-o", folder / "int8", "--dtype", "int8"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(contains(refused.err, "segment --precision int8")) << refused.err;
}

TEST(ConvertToOnnx, RefusesWhatSegmentAnythingDoesNotHave) {
  const fs::path sam = sam_fixture("padded_windows").model;
  expect_refusal({sam, "--image-size", "64"}, 2, "--image-size: does not apply to Segment Anything");
  expect_refusal({sam, "--dtype", "int8"}, 2, "--dtype: Segment Anything is exported in fp32");
}

TEST(ConvertToOnnx, Int8NeedsAnInt8Folder) {
  const fs::path model = model_fixture("timm_token"), folder = scratch_folder();
  expect_refusal({model, "--dtype", "int8"}, 1, "first run vitrail convert MODEL -o FOLDER --dtype int8");
  expect_refusal({model, "--dtype", "int8", "--calibrate", folder}, 2, "--calibrate: is for an int8 folder");
  expect_refusal({model, "--dtype", "bf16"}, 2, "--dtype: an ONNX file is fp32 or int8");
}

TEST(ConvertToOnnx, QuantisedActivationsNeedImagesAndAnImageModel) {
  const fs::path model = model_fixture("timm_token"), empty = scratch_folder(), broken = scratch_folder() / "a.png";
  std::ofstream(broken) << "no image";
  const auto refused = [](const fs::path& from, const Arguments& more, int status, const std::string& message) {
    expect_refusal(Arguments{from, "--activations", "int8"} + more, status, message);
  };
  const std::string images = image_folder(1);
  refused(model, {}, 2, "--activations: requires --dtype int8");
  refused(model, {"--dtype", "int8"}, 2, "--activations: requires --calibrate IMAGES");
  refused(model, {"--dtype", "int8", "--calibrate", empty}, 1, "expected a folder with images, got none");
  refused(model, {"--dtype", "int8", "--calibrate", broken}, 1, "a.png");
  refused(model, {"--dtype", "int8", "--calibrate", images, "--tolerance", "1"}, 2, "--tolerance");
  refused(model_fixture("hf_clip"), {"--dtype", "int8", "--calibrate", images}, 1, "a dual model");
  refused(sam_fixture("padded_windows").model, {"--dtype", "int8", "--calibrate", images}, 2,
          "--dtype: Segment Anything is exported in fp32");
}

TEST(ConvertToOnnx, LayersThatInt8ExcludesKeepTheirActivations) {
  const fs::path folder = scratch_folder();
  const Arguments calibrated{"--dtype", "int8", "--calibrate", noise_folder()};
  const auto depth = models::open_model(model_fixture("timm_token")).config.vit.depth;
  for (const bool excluded : {false, true}) {
    const fs::path int8 = folder / (excluded ? "excluded" : "int8"), file = folder / "m.onnx";
    const Arguments tolerance{"--tolerance", excluded ? "1e-9" : "1"};
    ASSERT_EQ(
        run_program(Arguments{"convert", model_fixture("timm_token"), "-o", int8} + calibrated + tolerance).status, 0);
    const ProgramResult result =
        run_program(Arguments{"convert", int8, "-o", file, "--activations", "int8"} + calibrated);
    ASSERT_EQ(result.status, 0) << result.err;
    const OnnxFile graph = read_onnx(file);
    EXPECT_EQ(graph_errors(graph), "");
    // The patch embedding is in 32 bits in the folder, and quantised here.  A weight includes its correction.
    EXPECT_EQ(graph.count("QuantizeLinear"), excluded ? 1 : 4 * depth + 1);
    EXPECT_EQ(graph.count("DequantizeLinear"), 2 * graph.count("QuantizeLinear"));
  }
}

// Four layers of each block, and nothing else.
TEST(ConvertToOnnx, Int8FolderGivesInt8Weights) {
  const fs::path folder = scratch_folder(), int8 = folder / "int8";
  ASSERT_EQ(run_program({"convert", model_fixture("timm_token"), "-o", int8, "--dtype", "int8"}).status, 0);
  const auto exported = [&](const Arguments& more) {
    const ProgramResult result = run_program(Arguments{"convert", int8, "-o", folder / "m.onnx"} + more);
    EXPECT_EQ(result.status, 0) << result.err;
    return read_onnx(folder / "m.onnx");
  };
  const OnnxFile quantised = exported({"--dtype", "int8"}), plain = exported({});
  EXPECT_EQ(graph_errors(quantised), "");
  const auto depth = models::open_model(int8).config.vit.depth;
  EXPECT_EQ(quantised.count("DequantizeLinear"), 4 * depth);
  EXPECT_EQ(plain.count("DequantizeLinear"), 0);
  for (const char* layer : {"attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2"}) {
    const std::string name = std::string("blocks.0.") + layer + ".weight";
    ASSERT_EQ(quantised.constants.count(name), 1u) << name;
    EXPECT_EQ(quantised.constants.at(name).type, kInt8);
    EXPECT_EQ(quantised.constants.at(name).shape[1], quantised.constants.at(name + "_scale").shape[0]);
  }
}

}  // namespace
}  // namespace vitrail::testing
