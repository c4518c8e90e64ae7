// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include <dlfcn.h>
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/installation_internal.h"
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

// The C library is a module that is always there.
TEST_F(ModuleLoader, GivesTheAddressOfTheEntry) {
  Dl_info info{};
  void* const address = ::dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
  ASSERT_NE(address, nullptr);
  ASSERT_NE(::dladdr(address, &info), 0);
  const std::filesystem::path library = info.dli_fname;
  ::setenv("VITRAIL_MODULES", library.parent_path().c_str(), 1);
  for (const bool global : {false, true}) {
    EXPECT_EQ(load_module({.where = "mpi",
                           .file = library.filename(),
                           .entry = "gnu_get_libc_version",
                           .built = "always",
                           .global = global}),
              address);
  }
  const std::string message = message_of(library.filename(), "no_such_entry");
  EXPECT_TRUE(message.starts_with("mpi: expected a module that loads, got ")) << message;
  EXPECT_TRUE(testing::contains(message, "no_such_entry")) << message;
}

TEST_F(ModuleLoader, SearchesTheNamedFolderAloneOrTheProgramsFirst) {
  EXPECT_EQ(message_of("absent.so", "entry"),
            "mpi: expected the module absent.so in " + folder_.string() +
                " (VITRAIL_MODULES names another folder; it is built with an option), got none");
  ::unsetenv("VITRAIL_MODULES");
  const std::string message = message_of("absent.so", "entry");
  std::string folders = program_folder().string() + ", " + program_folder().parent_path().string() + ", ";
  EXPECT_TRUE(message.starts_with("mpi: expected the module absent.so in " + folders)) << message;
  for (const std::filesystem::path& prefix : installation_prefixes())
    EXPECT_TRUE(testing::contains(message, ", " + prefix.string() + "/lib")) << message;
  EXPECT_TRUE(testing::contains(message, "/vitrail (VITRAIL_MODULES names another folder;")) << message;
}

TEST(ModuleRequest, IsLocalByDefault) { EXPECT_FALSE(ModuleRequest().global); }

}  // namespace
}  // namespace vitrail
