// SPDX-License-Identifier: Apache-2.0
// Models known by name.
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/apps/cli_fixture.h"
#include "tests/support/models.h"
#include "vitrail/kernels/isa/isa.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

// A home whose models/NAME is a fixture.
std::map<std::string, std::string> home_with(const std::string& name) {
  const fs::path home = scratch_folder() / name;
  fs::create_directories(home / "models");
  fs::copy(model_fixture("timm_avg").parent_path(), home / "models" / name, fs::copy_options::recursive);
  return {{"VITRAIL_HOME", home.string()}};
}

TEST(Bundled, AModelIsOpenedByItsName) {
  const auto environment = home_with("of-my-own");
  const Ended inspected = run_program({"inspect", "-m", "of-my-own"}, "", environment);
  EXPECT_EQ(inspected.status, 0) << inspected.err;
  EXPECT_NE(run_program({"models"}, "", environment).out.find("of-my-own"), std::string::npos);
  EXPECT_EQ(run_program({"inspect", "-m", "of-my-own"}).status, 1);
}

TEST(Bundled, TheDefaultRunsWhereNoneIsNamed) {
  const Ended inspected = run_program({"inspect"}, "", home_with("cifar10-vit"));
  EXPECT_EQ(inspected.status, 0) << inspected.err;
  EXPECT_NE(inspected.out.find("cifar10-vit/model.safetensors"), std::string::npos) << inspected.out;
}

TEST(Bundled, AProgramApartFromItsModelsSaysHowToNameOne) {
  const fs::path alone = scratch_folder() / "bin" / "vitrail";
  fs::create_directories(alone.parent_path());
  fs::copy_file(program(), alone);
  if (contains(run_program({"models"}, "", {}, alone).out, "cifar10-vit")) GTEST_SKIP() << "vitrail is installed here";
  const Ended ended = run_program({"classify", "x.png"}, "", {}, alone);
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(contains(ended.err, "-m MODEL")) << ended.err;
}

TEST(Bundled, TheProgramsOwnModelNamesWhatIsOnAPhotograph) {
  const Ended ended = run_program({"classify", source("examples/photographs/chelsea.png"), "--format", "json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(json_lines(ended.out).at(0)["predictions"][0]["label"], "cat");
}

// Instruction sets sum in other orders: a picture or two of the 10,000 may change sides.
TEST(Bundled, EvalGivesTheCardsScoreOnSharedImages) {
  VITRAIL_NEED_ASSETS(assets);
  if (kernels::active_isa() == kernels::Isa::scalar) GTEST_SKIP() << "10,000 pictures take the references half an hour";
  std::ostringstream card;
  card << std::ifstream(source("models/cifar10-vit/README.md")).rdbuf();
  std::smatch score;
  const std::string text = card.str();
  ASSERT_TRUE(std::regex_search(text, score, std::regex("value: ([0-9.]+)")));
  const Ended ended = run_program({"eval", assets / "cifar10/cifar10_jpeg.zip", "--batch", "32", "--quiet"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const auto result = json_lines(ended.out).at(0);
  EXPECT_EQ(result["images"], 10000);
  EXPECT_NEAR(100 * result["top1"].get<double>(), std::stod(score[1]), 0.025);
}

}  // namespace
}  // namespace vitrail::testing
