// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where tests find things.
#include <filesystem>
#include <optional>
#include <string>

namespace vitrail::testing {

std::filesystem::path fixture(const std::string& relative);  // a file under tests/fixtures; fails loudly when absent
std::filesystem::path source(const std::string& relative);   // a file of the repository; fails loudly when absent
std::filesystem::path program();                             // the built vitrail
// The shared assets (VITRAIL_ASSETS, else ../shared/assets beside the repository), or nothing.
std::optional<std::filesystem::path> assets();
// An empty folder of this test's own, removed when the process ends.
std::filesystem::path scratch_folder();

}  // namespace vitrail::testing

// Leaves the test as skipped, with a message, when the shared assets are absent; otherwise names their path `variable`.
#define VITRAIL_NEED_ASSETS(variable)                                                          \
  const auto variable##_or_none = ::vitrail::testing::assets();                                \
  if (!variable##_or_none) GTEST_SKIP() << "the shared assets are absent: set VITRAIL_ASSETS"; \
  const std::filesystem::path variable = *variable##_or_none
