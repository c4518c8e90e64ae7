// SPDX-License-Identifier: Apache-2.0
// Bundled models, which are opened by name.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/apps/cli_fixture.h"
#include "tests/support/models.h"
#include "vitrail/base/random.h"
#include "vitrail/image/encode.h"
#include "vitrail/kernels/isa/isa.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

// The environment of an installation whose models/NAME is a fixture.
std::map<std::string, std::string> home_with(const std::string& name) {
  const fs::path home = scratch_folder() / name;
  fs::create_directories(home / "models");
  fs::copy(model_fixture("timm_avg").parent_path(), home / "models" / name, fs::copy_options::recursive);
  return {{"VITRAIL_HOME", home.string()}};
}

TEST(Bundled, AModelIsOpenedByItsName) {
  const auto environment = home_with("my-model");
  const ProgramResult inspected = run_program({"inspect", "-m", "my-model"}, "", environment);
  EXPECT_EQ(inspected.status, 0) << inspected.err;
  EXPECT_NE(run_program({"models"}, "", environment).out.find("my-model"), std::string::npos);
  EXPECT_EQ(run_program({"inspect", "-m", "my-model"}).status, 1);
}

TEST(Bundled, TheDefaultModelIsUsedWithoutDashM) {
  const ProgramResult inspected = run_program({"inspect"}, "", home_with("imagenet-tiny"));
  EXPECT_EQ(inspected.status, 0) << inspected.err;
  EXPECT_NE(inspected.out.find("imagenet-tiny/model.safetensors"), std::string::npos) << inspected.out;
}

TEST(Bundled, WithoutBundledModelsTheErrorAsksForAModel) {
  const fs::path copied_program = scratch_folder() / "bin" / "vitrail";
  fs::create_directories(copied_program.parent_path());
  fs::copy_file(program(), copied_program);
  if (contains(run_program({"models"}, "", {}, copied_program).out, "imagenet-tiny"))
    GTEST_SKIP() << "vitrail is installed here";
  const ProgramResult result = run_program({"classify", "x.png"}, "", {}, copied_program);
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "-m MODEL")) << result.err;
  const ProgramResult segmented = run_program({"segment", "x.png", "--point", "1,1"}, "", {}, copied_program);
  EXPECT_EQ(segmented.status, 2);
  EXPECT_TRUE(contains(segmented.err, "--model is required")) << segmented.err;
}

TEST(Bundled, TheDefaultModelClassifiesAPhotograph) {
  const ProgramResult result =
      run_program({"classify", source("examples/photographs/chelsea.png"), "--format", "json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(json_lines(result.out).at(0)["predictions"][0]["label"], "Egyptian cat");
}

// A red disc of 60 pixels' radius around 170,110 on grey noise.
std::string photo_of_a_disc() {
  image::Image photo = image::make_image(320, 240, 3);
  RandomStream random(random_key("noise"));
  for (uint8_t& pixel : photo.pixels) pixel = static_cast<uint8_t>(100 + 50 * random.uniform());
  for (int64_t y = 0; y < photo.height; ++y) {
    for (int64_t x = 0; x < photo.width; ++x) {
      constexpr std::array<uint8_t, 3> kRed{200, 30, 40};
      if ((x - 170) * (x - 170) + (y - 110) * (y - 110) < 60 * 60) std::ranges::copy(kRed, photo.row(y) + 3 * x);
    }
  }
  const fs::path file = scratch_folder() / "disc.png";
  image::write_png(file, photo);
  return file.string();
}

TEST(Bundled, TheDefaultSegmenterFindsADisc) {
  const std::string photo = photo_of_a_disc();
  for (const auto& [option, value] : {std::pair{"--point", "170,110"}, {"--box", "110,50,231,171"}}) {
    SCOPED_TRACE(option);
    const ProgramResult result = run_program({"segment", photo, option, value, "--format", "json"});
    ASSERT_EQ(result.status, 0) << result.err;
    const auto masks = json_lines(result.out).at(0)["masks"];
    EXPECT_TRUE(std::ranges::any_of(masks, [](const auto& mask) {
      constexpr double kArea = 11310, kSide = 120;
      return std::abs(mask["area"].template get<double>() - kArea) < 0.15 * kArea &&
             std::abs(mask["bbox"][2].template get<double>() - kSide) < 0.15 * kSide;
    })) << masks;
  }
}

// Instruction sets accumulate in different orders, so the prediction of one or two of the 10,000 images may change.
TEST(Bundled, EvalGivesTheAccuracyOfTheModelCard) {
  VITRAIL_SKIP_WITH_SANITIZER();
  VITRAIL_NEED_ASSETS(assets);
  if (kernels::active_isa() == kernels::Isa::scalar)
    GTEST_SKIP() << "10,000 images take half an hour with the scalar kernels";
  std::ostringstream card;
  card << std::ifstream(source("models/cifar10-vit/README.md")).rdbuf();
  std::smatch accuracy;
  const std::string text = card.str();
  ASSERT_TRUE(std::regex_search(text, accuracy, std::regex("value: ([0-9.]+)")));
  const ProgramResult result = run_program({"eval", "-m", "cifar10-vit", "--format", "json",
                                            assets / "cifar10/cifar10_jpeg.zip", "--batch", "32", "--quiet"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto metrics = json_lines(result.out).at(0);
  EXPECT_EQ(metrics["images"], 10000);
  EXPECT_NEAR(100 * metrics["top1"].get<double>(), std::stod(accuracy[1]), 0.025);
}

}  // namespace
}  // namespace vitrail::testing
