// Models known by name.
#include <gtest/gtest.h>

#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"

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

}  // namespace
}  // namespace vitrail::testing
