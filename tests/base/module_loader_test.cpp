// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/module_loader_internal.h"

namespace vitrail {
namespace {

class ModuleLoader : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("VITRAIL_MODULES", folder_.c_str(), 1); }
  void TearDown() override { ::unsetenv("VITRAIL_MODULES"); }
  static std::string message_of(const std::string& file, const std::string& entry) {
    return testing::error_of([&] {
      load_module({.where = "mpi", .file = file, .entry = entry, .built = "with an option", .global = false});
    });
  }

  const std::filesystem::path folder_ = testing::scratch_folder();
};

TEST_F(ModuleLoader, AMissingModuleIsAnErrorThatNamesItsFolderAndHowItIsBuilt) {
  const std::string message = message_of("absent.so", "entry");
  EXPECT_TRUE(testing::contains(message, "absent.so in " + folder_.string())) << message;
  EXPECT_TRUE(testing::contains(message, "it is built with an option")) << message;
}

TEST_F(ModuleLoader, AFileThatIsNoLibraryIsAnErrorThatSaysSo) {
  std::ofstream(folder_ / "text.so") << "no library";
  const std::string message = message_of("text.so", "entry");
  EXPECT_TRUE(testing::contains(message, "mpi: expected a module that loads, got ")) << message;
  EXPECT_TRUE(testing::contains(message, "text.so")) << message;
}

}  // namespace
}  // namespace vitrail
