// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/installation_internal.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace vitrail {
namespace {

namespace fs = std::filesystem;

TEST(Installation, TheProgramsFolderIsThatOfTheRunningFile) {
  const fs::path program = fs::canonical("/proc/self/exe");
  EXPECT_EQ(program_folder(), program.parent_path());
  EXPECT_TRUE(fs::exists(program_folder() / program.filename()));
}

// A library in a folder of its own has a second one.
TEST(Installation, TheFirstPrefixIsThatAboveTheProgramsFolder) {
  const fs::path program = fs::canonical("/proc/self/exe");
  const std::vector<fs::path> prefixes = installation_prefixes();
  Dl_info info{};
  ASSERT_NE(::dladdr(reinterpret_cast<const void*>(&installation_prefixes), &info), 0);
  const fs::path library = fs::canonical(info.dli_fname).parent_path();
  ASSERT_EQ(prefixes.size(), library == program.parent_path() ? 1u : 2u);
  EXPECT_EQ(prefixes.front(), program.parent_path().parent_path());
  if (prefixes.size() == 2) {
    EXPECT_TRUE(library.string().starts_with(prefixes.back().string()));
  }
}

}  // namespace
}  // namespace vitrail
