// SPDX-License-Identifier: Apache-2.0
#pragma once
// Paths of fixtures, the program and the shared assets.
#include <filesystem>
#include <optional>
#include <string>

namespace vitrail::testing {

std::filesystem::path fixture(const std::string& relative);  // a file under tests/fixtures; throws if absent
std::filesystem::path source(const std::string& relative);   // a file of the repository; throws if absent
std::filesystem::path program();                             // the vitrail executable
// The shared assets (VITRAIL_ASSETS, else ../shared/assets beside the repository), or nothing.
std::optional<std::filesystem::path> assets();
// A new empty folder, removed when the process ends.
std::filesystem::path scratch_folder();

}  // namespace vitrail::testing

// Skips the test if the shared assets are absent; otherwise declares `variable` with their path.
#define VITRAIL_NEED_ASSETS(variable)                                                          \
  const auto variable##_or_none = ::vitrail::testing::assets();                                \
  if (!variable##_or_none) GTEST_SKIP() << "the shared assets are absent: set VITRAIL_ASSETS"; \
  const std::filesystem::path variable = *variable##_or_none

// Skips a test that takes minutes with a sanitizer and whose code the fixtures test too.
#ifdef VITRAIL_SANITIZED
#define VITRAIL_SKIP_WITH_SANITIZER() GTEST_SKIP() << "takes minutes with a sanitizer"
#define VITRAIL_SKIP_MEMORY_WITH_SANITIZER() GTEST_SKIP() << "a sanitizer keeps memory that is freed"
#else
#define VITRAIL_SKIP_WITH_SANITIZER() static_cast<void>(0)
#define VITRAIL_SKIP_MEMORY_WITH_SANITIZER() static_cast<void>(0)
#endif
