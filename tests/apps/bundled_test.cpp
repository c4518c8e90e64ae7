// SPDX-License-Identifier: Apache-2.0
// Bundled models, which are opened by name.
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/apps/cli_fixture.h"
#include "tests/support/models.h"
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
  const ProgramResult inspected = run_program({"inspect"}, "", home_with("cifar10-vit"));
  EXPECT_EQ(inspected.status, 0) << inspected.err;
  EXPECT_NE(inspected.out.find("cifar10-vit/model.safetensors"), std::string::npos) << inspected.out;
}

TEST(Bundled, WithoutBundledModelsTheErrorAsksForAModel) {
  const fs::path copied_program = scratch_folder() / "bin" / "vitrail";
  fs::create_directories(copied_program.parent_path());
  fs::copy_file(program(), copied_program);
  if (contains(run_program({"models"}, "", {}, copied_program).out, "cifar10-vit"))
    GTEST_SKIP() << "vitrail is installed here";
  const ProgramResult result = run_program({"classify", "x.png"}, "", {}, copied_program);
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "-m MODEL")) << result.err;
}

TEST(Bundled, TheDefaultModelClassifiesAPhotograph) {
  const ProgramResult result =
      run_program({"classify", source("examples/photographs/chelsea.png"), "--format", "json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(json_lines(result.out).at(0)["predictions"][0]["label"], "cat");
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
  const ProgramResult result =
      run_program({"eval", "--format", "json", assets / "cifar10/cifar10_jpeg.zip", "--batch", "32", "--quiet"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto metrics = json_lines(result.out).at(0);
  EXPECT_EQ(metrics["images"], 10000);
  EXPECT_NEAR(100 * metrics["top1"].get<double>(), std::stod(accuracy[1]), 0.025);
}

}  // namespace
}  // namespace vitrail::testing
