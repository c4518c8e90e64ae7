// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/installed_files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/paths.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;

TEST(InstalledFiles, AreFoundInTheInstallationIfThePathDoesNotExist) {
  const fs::path home = testing::scratch_folder();
  fs::create_directories(home / "recipes");
  std::ofstream(home / "recipes/a.json") << "{}";
  ::setenv("VITRAIL_HOME", home.c_str(), 1);
  EXPECT_EQ(find_installed("recipes/a.json"), home / "recipes/a.json");
  EXPECT_EQ(find_installed(home / "recipes"), home / "recipes");
  EXPECT_FALSE(find_installed("recipes/absent.json"));
  EXPECT_FALSE(find_installed("/recipes/a.json")) << "an absolute path";
  EXPECT_FALSE(find_installed(""));
  ::unsetenv("VITRAIL_HOME");
  EXPECT_FALSE(find_installed("recipes/a.json"));
}

}  // namespace
}  // namespace vitrail
