// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/installed_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "tests/support/paths.h"
#include "vitrail/base/installation_internal.h"

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

TEST(InstalledFiles, AreSearchedInTheOrderOfTheFolders) {
  ::unsetenv("VITRAIL_HOME");
  std::vector<fs::path> want;
  for (const fs::path& prefix : installation_prefixes()) want.push_back(prefix / "share" / "vitrail");
  want.push_back(program_folder().parent_path().parent_path());
  const std::vector<fs::path> folders = installation_folders();
  ASSERT_EQ(folders.size(), want.size() + 2);
  EXPECT_TRUE(std::equal(want.begin(), want.end(), folders.begin()));
  EXPECT_EQ(folders[want.size()].filename(), "vitrail") << "that of the configured prefix";
  EXPECT_TRUE(folders[want.size()].is_absolute());
  EXPECT_EQ(folders.back(), "/usr/share/vitrail");
  ::setenv("VITRAIL_HOME", "/some/home", 1);
  std::vector<fs::path> with_home = installation_folders();
  ::unsetenv("VITRAIL_HOME");
  ASSERT_EQ(with_home.size(), folders.size() + 1);
  EXPECT_EQ(with_home.front(), "/some/home");
  with_home.erase(with_home.begin());
  EXPECT_EQ(with_home, folders);
}

TEST(InstalledFiles, APathThatExistsIsTakenAsItIs) {
  const fs::path home = testing::scratch_folder(), work = testing::scratch_folder(), before = fs::current_path();
  for (const fs::path& folder : {home, work}) std::ofstream(folder / "both.json") << "{}";
  std::ofstream(home / "one.json") << "{}";
  ::setenv("VITRAIL_HOME", home.c_str(), 1);
  fs::current_path(work);
  const auto both = find_installed("both.json"), one = find_installed("one.json"),
             absolute = find_installed(home / "none.json");
  fs::current_path(before);
  ::unsetenv("VITRAIL_HOME");
  EXPECT_EQ(both, "both.json");
  EXPECT_EQ(one, home / "one.json");
  EXPECT_FALSE(absolute);
}

}  // namespace
}  // namespace vitrail
