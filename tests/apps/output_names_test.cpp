// SPDX-License-Identifier: Apache-2.0
// Two outputs that are one file are refused however they are written, and before the file exists.
#include "tests/apps/shell.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

class OutputNames : public ::testing::Test {
 protected:
  OutputNames() {
    fs::create_directories(folder_ / "d");
    fs::create_symlink("d", folder_ / "link");
    for (const char* name : {"one", "two"}) fs::create_symlink("absent", folder_ / name);
    fs::create_symlink("../absent", folder_ / "d" / "three");
  }

  // The status of a command that does not find its model unless the outputs are refused before.
  int status_of(const std::string& first, const std::string& second) const {
    return shell("cd '" + folder_.string() + "' && $V eval . -m absent --report '" + first + "' --predictions '" +
                 second + "' 2>err");
  }
  std::string message() const { return content_of(folder_ / "err"); }

  fs::path folder_ = scratch_folder();
};

TEST_F(OutputNames, OfOneFileAreRefused) {
  const std::pair<std::string, std::string> pairs[] = {
      {"r", "./r"},       {"./r", "r"},   {"r", folder_ / "r"}, {"r", "d/../r"},     {"d/r", "link/r"},
      {"r", "link/../r"}, {"one", "two"}, {"one", "absent"},    {"./absent", "two"}, {"one", "link/three"}};
  for (const auto& [first, second] : pairs) {
    EXPECT_EQ(status_of(first, second), 2) << first << " " << second;
    EXPECT_TRUE(contains(message(), "expected another file than that of --")) << message();
  }
}

TEST_F(OutputNames, OfTwoFilesAreAccepted) {
  const std::pair<std::string, std::string> pairs[] = {{"r", "d/r"}, {"r", "./R"}, {"one", "one.csv"}, {"r", "three"}};
  for (const auto& [first, second] : pairs) EXPECT_EQ(status_of(first, second), 1) << message();
}

}  // namespace
}  // namespace vitrail::testing
