// SPDX-License-Identifier: Apache-2.0
// convert --dtype int8, and --tome.
#include <fstream>

#include "tests/apps/option_effects.h"
#include "tests/support/golden.h"
#include "tests/support/models.h"
#include "vitrail/base/npy.h"

namespace vitrail::testing {
namespace {

std::vector<float> logits_of(const std::vector<std::string>& classify, const std::filesystem::path& file) {
  std::vector<std::string> arguments{"classify", "--logits", file.string()};
  arguments.insert(arguments.end(), classify.begin(), classify.end());
  const ProgramResult result = run_program(arguments);
  EXPECT_EQ(result.status, 0) << result.err;
  return read_npy(file).f32;
}

// The relative L2 error.
double relative_error(const std::vector<float>& got, const std::vector<float>& want) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  return std::sqrt(error / norm);
}

nlohmann::json json_in(const std::filesystem::path& file) { return nlohmann::json::parse(std::ifstream(file)); }

// The header of a safetensors file lists the tensor names.
bool has_tensor(const std::filesystem::path& folder, const std::string& name) {
  std::ifstream file(folder / "model.safetensors", std::ios::binary);
  return contains(std::string(std::istreambuf_iterator<char>(file), {}), '"' + name + '"');
}

TEST(ConvertInt8, StoredWeightsEqualThoseQuantisedAtLoadTime) {
  const auto folder = scratch_folder();
  const std::string images = image_folder(3).string(), hub = (folder / "hub").string();
  const ProgramResult result = run_program({"convert", small_model(), "-o", hub, "--dtype", "int8"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto quantised_at_load =
      logits_of({"-m", small_model(), "--precision", "int8", images}, folder / "at_load.npy");
  const auto stored = logits_of({"-m", hub, images}, folder / "stored.npy");  // config.json selects int8
  // Scales may differ in their last bit, so that some activations round to the other neighbour: an error of 1e-5 each.
  // A wrong weight value would cause an error of 1e-2.
  EXPECT_LT(relative_error(stored, quantised_at_load), 1e-4);
  // In fp32, the stored weights still have the error of int8 quantisation.
  const auto exact = logits_of({"-m", small_model(), images}, folder / "exact.npy");
  const auto in_fp32 = logits_of({"-m", hub, "--precision", "fp32", images}, folder / "fp32.npy");
  EXPECT_GT(relative_error(in_fp32, exact), 1e-5);
  EXPECT_LT(relative_error(in_fp32, exact), 0.05);
}

TEST(ConvertInt8, CalibrationExcludesSensitiveLayers) {
  const auto folder = scratch_folder();
  const std::string images = image_folder(3).string(), all = (folder / "all").string(),
                    none = (folder / "none").string();
  ProgramResult result = run_program(
      {"convert", small_model(), "-o", all, "--dtype", "int8", "--calibrate", images, "--tolerance", "1e-9"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "8 of 8 linear layers excluded from int8")) << result.err;
  result =
      run_program({"convert", small_model(), "-o", none, "--dtype", "int8", "--calibrate", images, "--tolerance", "1"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "0 of 8 linear layers excluded from int8")) << result.err;
  EXPECT_EQ(json_in(folder / "all/config.json").at("int8").at("excluded").size(), 8U);
  EXPECT_TRUE(json_in(folder / "none/config.json").at("int8").at("excluded").empty());
  // Each int8 weight has its correction beside it.
  EXPECT_TRUE(has_tensor(none, "blocks.0.mlp.fc1.weight_correction"));
  EXPECT_FALSE(has_tensor(all, "blocks.0.mlp.fc1.weight_correction"));
  const auto exact = logits_of({"-m", small_model(), images}, folder / "exact.npy");
  EXPECT_LT(relative_error(logits_of({"-m", all, images}, folder / "all.npy"), exact), 0.01);
  EXPECT_LT(relative_error(logits_of({"-m", none, images}, folder / "none.npy"), exact), 0.04);
}

// The int8 weight plus its correction equals the original weight to the correction's scale.  Other precisions and
// conversion back to fp32 use this sum.
TEST(ConvertInt8, CorrectionsAreAddedToTheWeightsInOtherPrecisions) {
  const auto folder = scratch_folder();
  const std::string images = image_folder(3).string(), hub = (folder / "hub").string(),
                    back = (folder / "back").string();
  ASSERT_EQ(
      run_program({"convert", small_model(), "-o", hub, "--dtype", "int8", "--calibrate", images, "--tolerance", "1"})
          .status,
      0);
  ASSERT_EQ(run_program({"convert", hub, "-o", back}).status, 0);
  const auto exact = logits_of({"-m", small_model(), images}, folder / "exact.npy"),
             int8 = logits_of({"-m", hub, images}, folder / "int8.npy"),
             fp32 = logits_of({"-m", hub, "--precision", "fp32", images}, folder / "fp32.npy");
  // The correction's scale is a hundredth of the weight's.  int8 also has the error of quantised activations.
  EXPECT_LT(relative_error(fp32, exact), 0.2 * relative_error(int8, exact));
  EXPECT_LT(relative_error(logits_of({"-m", back, images}, folder / "back.npy"), fp32), 1e-5);
}

// The weights of excluded layers need no more bits than int8 arithmetic beside them warrants.
TEST(ConvertInt8, ExcludedLayersHaveSixteenBitsAndOthersEight) {
  const auto folder = scratch_folder();
  const std::string images = image_folder(3).string(), all = (folder / "all").string();
  ASSERT_EQ(run_program(
                {"convert", small_model(), "-o", all, "--dtype", "int8", "--calibrate", images, "--tolerance", "1e-9"})
                .status,
            0);
  size_t matrices = 0;
  for (const auto& [name, tensor] : read_golden(folder / "all/model.safetensors").tensors) {
    if (!name.starts_with("blocks.") || tensor.rank() != 2) continue;
    EXPECT_EQ(size_of(tensor.dtype()), 2U) << name;
    ++matrices;
  }
  EXPECT_EQ(matrices, 8U);
}

// BEiT's tables of relative positions are matrices, too, but no weights of linear layers.
TEST(ConvertInt8, TablesOfRelativePositionsStay) {
  const auto folder = scratch_folder();
  const std::string images = image_folder(2).string();
  for (const std::string name : {"timm_beit", "hf_data2vec"}) {
    const std::string model = model_fixture(name).parent_path().string(), hub = (folder / name).string();
    const ProgramResult result = run_program({"convert", model, "-o", hub, "--dtype", "int8"});
    ASSERT_EQ(result.status, 0) << result.err;
    const std::string table = "blocks.0.attn.relative_position_bias_table";
    EXPECT_TRUE(has_tensor(hub, table));
    EXPECT_FALSE(has_tensor(hub, table + "_scale"));
    EXPECT_TRUE(has_tensor(hub, "blocks.0.attn.qkv.weight_scale"));
    for (const char* precision : {"int8", "fp32", "half"}) {
      const ProgramResult embed = run_program(
          {"embed", "-m", hub, "--precision", precision, images, "-o", (folder / "embeddings.npy").string()});
      EXPECT_EQ(embed.status, 0) << embed.err;
    }
  }
}

// 64 images are evenly spaced over more: of 96, number i is i*96/64.
TEST(ConvertInt8, CalibrationImagesAreEvenlySpaced) {
  const auto folder = scratch_folder();
  const std::filesystem::path many = folder / "many", few = folder / "few";
  for (int i = 0; i < 96; ++i) {
    const std::string name = std::to_string(100 + i) + ".png";
    write_noise(many / name, 8, 8, static_cast<uint64_t>(i));
    if (i % 3 == 2) continue;  // 0, 1, 3, 4, 6, …
    std::filesystem::create_directories(few);
    std::filesystem::copy(many / name, few / name);
  }
  const auto converted = [&](const std::filesystem::path& images) {
    const std::string hub = (folder / ("hub_" + images.filename().string())).string();
    const ProgramResult result =
        run_program({"convert", small_model(), "-o", hub, "--dtype", "int8", "--calibrate", images.string()});
    EXPECT_EQ(result.status, 0) << result.err;
    return content_of(hub + "/model.safetensors");
  };
  EXPECT_EQ(converted(many), converted(few));
}

TEST(ConvertInt8, InvalidCombinationsOfOptionsAreErrors) {
  const auto folder = scratch_folder();
  ProgramResult result = run_program({"convert", small_model(), "-o", folder / "a", "--calibrate", "x.png"});
  EXPECT_EQ(result.status, 2);
  EXPECT_TRUE(contains(result.err, "requires --dtype int8")) << result.err;
  result = run_program({"convert", small_model(), "-o", folder / "b", "--dtype", "int8", "--calibrate", "absent.png"});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "absent.png")) << result.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "b"));
}

TEST(Tome, MergesTokensAndRejectsPatchFeatures) {
  const auto folder = scratch_folder();
  const std::string images = image_folder(2).string();
  const auto exact = logits_of({"-m", small_model(), images}, folder / "exact.npy");
  const auto merged = logits_of({"-m", small_model(), "--tome", "2", images}, folder / "merged.npy");
  EXPECT_GT(relative_error(merged, exact), 0);
  const ProgramResult result = run_program(
      {"embed", "-m", small_model(), "--tome", "2", "--tokens", "patch", "-o", folder / "patch.npy", images});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "without token merging")) << result.err;
}

}  // namespace
}  // namespace vitrail::testing
