// SPDX-License-Identifier: Apache-2.0
#include "tests/support/errors.h"

#include "tests/support/paths.h"

namespace vitrail::testing {
namespace {

TEST(Errors, WhereValueAndWordingAreCompared) {
  const std::filesystem::path file = scratch_folder() / "errors.golden";
  const std::string message = "crop: expected 30 bytes, got 29";
  EXPECT_FALSE(ErrorWordings(file, false).check(message, "crop", "29"));
  ErrorWordings updated(file, true);
  EXPECT_TRUE(updated.check("grid: expected an image, got none", "grid", "none"));
  EXPECT_TRUE(updated.check(message, "crop", "29"));

  ErrorWordings read(file, false);
  EXPECT_TRUE(read.check(message, "crop", "29"));
  EXPECT_TRUE(read.check("a/b.png: expected an image, got none", "a/b.png", "none"));
  EXPECT_FALSE(read.check(message, "grid", "29"));
  EXPECT_FALSE(read.check(message, "crop", "9"));
  EXPECT_FALSE(read.check("crop: expected 31 bytes, got 29", "crop", "29"));
  EXPECT_FALSE(read.check("", "crop", "29"));
}

TEST(Errors, TheTextHasAPlaceForTheWording) {
  EXPECT_ERROR_TEXT("crop: expected 30 bytes, got 29", "crop: …, got 29");
  EXPECT_FALSE(is_error("crop: expected 30 bytes, got 29", "crop: …, got 28"));
  EXPECT_FALSE(is_error("crop: expected 30 bytes, got 29", "crop: expected 30 bytes, got 29"));
}

}  // namespace
}  // namespace vitrail::testing
