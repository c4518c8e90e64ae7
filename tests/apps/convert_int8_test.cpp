// SPDX-License-Identifier: Apache-2.0
// convert --dtype int8, and --tome: what trades accuracy for speed.
#include <fstream>

#include "tests/apps/cli_fixture.h"
#include "vitrail/base/npy.h"

namespace vitrail::testing {
namespace {

std::vector<float> logits_of(const std::vector<std::string>& classify, const std::filesystem::path& file) {
  std::vector<std::string> arguments{"classify", "--logits", file.string()};
  arguments.insert(arguments.end(), classify.begin(), classify.end());
  const Ended ended = run_program(arguments);
  EXPECT_EQ(ended.status, 0) << ended.err;
  return read_npy(file).f32;
}

double relative_distance(const std::vector<float>& got, const std::vector<float>& want) {
  double apart = 0, length = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    apart += (got[i] - want[i]) * (got[i] - want[i]);
    length += want[i] * want[i];
  }
  return std::sqrt(apart / length);
}

nlohmann::json json_of(const std::filesystem::path& file) { return nlohmann::json::parse(std::ifstream(file)); }

// A safetensors file begins with its tensors' names.
bool has_tensor(const std::filesystem::path& folder, const std::string& name) {
  std::ifstream file(folder / "model.safetensors", std::ios::binary);
  return contains(std::string(std::istreambuf_iterator<char>(file), {}), '"' + name + '"');
}

TEST(ConvertInt8, TheFileHasTheWholeNumbersThatTheProductsMake) {
  const auto folder = scratch_folder();
  const std::string pictures = picture_folder(3).string(), hub = (folder / "hub").string();
  const Ended ended = run_program({"convert", small_model(), "-o", hub, "--dtype", "int8"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const auto now = logits_of({"-m", small_model(), "--precision", "int8", pictures}, folder / "now.npy");
  const auto stored = logits_of({"-m", hub, pictures}, folder / "stored.npy");  // int8 of its own accord
  // Steps may differ in their last bit; an activation between two whole numbers then takes the other: 1e-5 each.  Other
  // numbers in a weight would be a hundredth.
  EXPECT_LT(relative_distance(stored, now), 1e-4);
  // In fp32 the stored weights differ from the model's by what int8 cost them.
  const auto exact = logits_of({"-m", small_model(), pictures}, folder / "exact.npy");
  const auto in_fp32 = logits_of({"-m", hub, "--precision", "fp32", pictures}, folder / "fp32.npy");
  EXPECT_GT(relative_distance(in_fp32, exact), 1e-5);
  EXPECT_LT(relative_distance(in_fp32, exact), 0.05);
}

TEST(ConvertInt8, WithPicturesItKeepsWhatLosesTooMuch) {
  const auto folder = scratch_folder();
  const std::string pictures = picture_folder(3).string(), all = (folder / "all").string(),
                    none = (folder / "none").string();
  Ended ended = run_program(
      {"convert", small_model(), "-o", all, "--dtype", "int8", "--calibrate", pictures, "--tolerance", "1e-9"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_TRUE(contains(ended.err, "in 16 bits stay 8 of the blocks' 8 linear layers")) << ended.err;
  ended = run_program(
      {"convert", small_model(), "-o", none, "--dtype", "int8", "--calibrate", pictures, "--tolerance", "1"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_TRUE(contains(ended.err, "in 16 bits stay 0 of")) << ended.err;
  EXPECT_EQ(json_of(folder / "all/config.json").at("int8").at("excluded").size(), 8U);
  EXPECT_TRUE(json_of(folder / "none/config.json").at("int8").at("excluded").empty());
  // What rounding has left stands beside what was rounded.
  EXPECT_TRUE(has_tensor(none, "blocks.0.mlp.fc1.weight_correction"));
  EXPECT_FALSE(has_tensor(all, "blocks.0.mlp.fc1.weight_correction"));
  const auto exact = logits_of({"-m", small_model(), pictures}, folder / "exact.npy");
  EXPECT_LT(relative_distance(logits_of({"-m", all, pictures}, folder / "all.npy"), exact), 0.01);
  EXPECT_LT(relative_distance(logits_of({"-m", none, pictures}, folder / "none.npy"), exact), 0.04);
}

// The weights that a file in 8 bits stands for are the model's but for a step of the rest: other precisions, and who
// converts it back, have them.
TEST(ConvertInt8, WhatRoundingHasLeftIsAddedWhereItIsNotInt8) {
  const auto folder = scratch_folder();
  const std::string pictures = picture_folder(3).string(), hub = (folder / "hub").string(),
                    back = (folder / "back").string();
  ASSERT_EQ(
      run_program({"convert", small_model(), "-o", hub, "--dtype", "int8", "--calibrate", pictures, "--tolerance", "1"})
          .status,
      0);
  ASSERT_EQ(run_program({"convert", hub, "-o", back}).status, 0);
  const auto exact = logits_of({"-m", small_model(), pictures}, folder / "exact.npy"),
             int8 = logits_of({"-m", hub, pictures}, folder / "int8.npy"),
             fp32 = logits_of({"-m", hub, "--precision", "fp32", pictures}, folder / "fp32.npy");
  // A step of the rest is a hundredth of one of the weight; int8 has the rounding of activations, too.
  EXPECT_LT(relative_distance(fp32, exact), 0.2 * relative_distance(int8, exact));
  EXPECT_LT(relative_distance(logits_of({"-m", back, pictures}, folder / "back.npy"), fp32), 1e-5);
}

TEST(ConvertInt8, WhatDoesNotGoTogetherIsSaid) {
  const auto folder = scratch_folder();
  Ended ended = run_program({"convert", small_model(), "-o", folder / "a", "--calibrate", "x.png"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_TRUE(contains(ended.err, "goes with --dtype int8")) << ended.err;
  ended = run_program({"convert", small_model(), "-o", folder / "b", "--dtype", "int8", "--calibrate", "absent.png"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(contains(ended.err, "absent.png")) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "b"));
}

TEST(Tome, MergesTokensWhereACommandTakesIt) {
  const auto folder = scratch_folder();
  const std::string pictures = picture_folder(2).string();
  const auto exact = logits_of({"-m", small_model(), pictures}, folder / "exact.npy");
  const auto merged = logits_of({"-m", small_model(), "--tome", "2", pictures}, folder / "merged.npy");
  EXPECT_GT(relative_distance(merged, exact), 0);
  const Ended ended = run_program(
      {"embed", "-m", small_model(), "--tome", "2", "--tokens", "patch", "-o", folder / "patch.npy", pictures});
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(contains(ended.err, "merges no tokens")) << ended.err;
}

}  // namespace
}  // namespace vitrail::testing
