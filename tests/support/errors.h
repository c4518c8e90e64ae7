// SPDX-License-Identifier: Apache-2.0
#pragma once
// Errors "WHERE: expected WORDING, got VALUE".  A test states where and value.  The wording is a line of the file
// errors.golden of the test's folder; the test program writes the file when all its tests run with
// VITRAIL_UPDATE_GOLDEN=1.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#define EXPECT_ERROR(message, where, value) EXPECT_TRUE(::vitrail::testing::is_error(message, where, value))
#define EXPECT_ERROR_TEXT(message, text) EXPECT_TRUE(::vitrail::testing::is_error(message, text))

namespace vitrail::testing {

// The wordings of a folder's errors.
class ErrorWordings {
 public:
  ErrorWordings(std::filesystem::path file, bool update);  // a missing file has none
  ::testing::AssertionResult check(const std::string& message, const std::string& where, const std::string& value);

 private:
  std::filesystem::path file_;
  bool update_;
  std::set<std::string> wordings_;
};

// Whether the message is an error at `where` with `value` and a wording of the current test's folder.
::testing::AssertionResult is_error(const std::string& message, const std::string& where, const std::string& value);
// The same with "WHERE: …, got VALUE", for tables of errors.
::testing::AssertionResult is_error(const std::string& message, const std::string& text);

}  // namespace vitrail::testing
