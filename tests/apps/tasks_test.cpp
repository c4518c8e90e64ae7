// SPDX-License-Identifier: Apache-2.0
// The command of tasks without one of their own, those of task_program.cpp.
#include <sstream>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/decode.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

ProgramResult extended(const Arguments& arguments) { return run_program(arguments, "", {}, VITRAIL_TASK_PROGRAM); }
ProgramResult mean_color(const Arguments& more) {
  return extended(Arguments{"mean-color", "-m", small_model()} + more);
}

TEST(TaskCommand, PrintsAndWritesTheResultsOfEachImage) {
  const fs::path images = image_folder(3), out = scratch_folder();
  std::ofstream(images / "b.png") << "no image";
  const ProgramResult result =
      mean_color({images, "--grid", "3", "--arrays", out / "arrays", "--render", out / "rendered"});
  EXPECT_EQ(result.status, 1);
  const std::vector<json> lines = json_lines(result.out);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0]["path"], (images / "a.png").string());
  EXPECT_EQ(lines[0]["shape"], (json{3, 3, 3}));
  EXPECT_EQ(lines[1]["path"], (images / "b.png").string());
  EXPECT_TRUE(lines[1].contains("error"));
  const NpyArray array = read_npy(out / "arrays/c.npy");
  EXPECT_EQ(array.shape, (std::vector<int64_t>{3, 3, 3}));
  EXPECT_EQ(json(array.f32), lines[2]["mean_color"]);
  EXPECT_EQ(image::read_image(out / "rendered/c.png").width, 3);
  EXPECT_FALSE(fs::exists(out / "arrays/b.npy"));
}

TEST(TaskCommand, ReplacesOnlyItsOwnFiles) {
  const fs::path images = image_folder(1), out = scratch_folder();
  const Arguments arguments{images, "--arrays", out};
  EXPECT_EQ(mean_color(arguments).status, 0);
  EXPECT_EQ(mean_color(arguments).status, 0);
  std::ofstream(out / "a.npy", std::ios::trunc) << "notes";
  const ProgramResult refused = mean_color(arguments);
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("--arrays: expected no file"), std::string::npos) << refused.err;
  EXPECT_EQ(mean_color(arguments + Arguments{"--force"}).status, 0);
  const ProgramResult inside = mean_color({images, "--render", images / "cells"});
  EXPECT_EQ(inside.status, 2);
  EXPECT_NE(inside.err.find("--render: expected a folder outside"), std::string::npos) << inside.err;
}

TEST(TaskCommand, HasTheOptionsThatTheTaskDescribes) {
  const ProgramResult wrong = mean_color({image_folder(1), "--grid", "65"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("--grid: expected an integer from 1 to 64, got '65'"), std::string::npos) << wrong.err;
  const std::string help = extended({"mean-color", "--help"}).out;
  EXPECT_NE(help.find("--grid INT:INT in [1 - 64]=2"), std::string::npos) << help;
  EXPECT_NE(extended({"completion", "bash"}).out.find("mean-color"), std::string::npos);
  EXPECT_NE(extended({"completion", "man"}).out.find("Show the mean colours of cells"), std::string::npos);
}

std::string bytes_of(const fs::path& file) {
  std::ostringstream bytes;
  bytes << std::ifstream(file, std::ios::binary).rdbuf();
  return bytes.str();
}

TEST(TaskCommand, RunsPassesInBatches) {
  const fs::path images = image_folder(5), out = scratch_folder();
  ASSERT_EQ(run_program({"embed", "-m", small_model(), images, "-o", out / "features.npy"}).status, 0);
  const ProgramResult result = extended({"embed-task", "-m", small_model(), images, "--batch", "2"});
  EXPECT_EQ(result.status, 0) << result.err;
  std::vector<float> rows;
  for (const json& line : json_lines(result.out)) {
    for (const json& value : line.at("embedding")) rows.push_back(value);
  }
  const std::vector<float> expected = read_npy(out / "features.npy").f32;
  ASSERT_EQ(rows.size(), expected.size());
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_NEAR(rows[i], expected[i], 1e-5) << i;
  const ProgramResult refused = extended({"embed-task", "-m", small_model(), images, "--arrays", out / "arrays"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("--arrays: does not apply to embed-task"), std::string::npos) << refused.err;
}

TEST(TaskCommand, FinishesTasksThatNeedAllImages) {
  const fs::path images = image_folder(3), out = scratch_folder();
  std::ofstream(images / "b.png") << "no image";
  EXPECT_EQ(run_program({"pca", "-m", small_model(), images, "-o", out / "expected"}).status, 1);
  const ProgramResult result = extended({"pca-task", "-m", small_model(), images, "--render", out / "rendered"});
  EXPECT_EQ(result.status, 1);
  const std::vector<json> lines = json_lines(result.out);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(lines[0].contains("colors"));
  EXPECT_TRUE(lines[1].contains("error"));
  EXPECT_TRUE(lines[2].contains("colors"));
  for (const char* name : {"a.png", "c.png"})
    EXPECT_EQ(bytes_of(out / "rendered" / name), bytes_of(out / "expected" / name)) << name;
}

}  // namespace
}  // namespace vitrail::testing
