// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/bundled.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/paths.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;

TEST(BundledModels, AreFoldersWithAConfiguration) {
  const fs::path home = testing::scratch_folder();
  for (const char* name : {"complete", "without"}) fs::create_directories(home / "models" / name);
  std::ofstream(home / "models" / "complete" / "config.json") << "{}";
  const char* const before = std::getenv("VITRAIL_HOME");
  const std::string restored = before ? before : "";
  ::setenv("VITRAIL_HOME", home.c_str(), 1);
  const std::vector<BundledModel> models = bundled_models();
  before ? ::setenv("VITRAIL_HOME", restored.c_str(), 1) : ::unsetenv("VITRAIL_HOME");
  const auto has = [&](const std::string& name) {
    return std::any_of(models.begin(), models.end(), [&](const BundledModel& model) { return model.name == name; });
  };
  EXPECT_TRUE(has("complete"));
  EXPECT_FALSE(has("without"));
}

}  // namespace
}  // namespace vitrail::models
