// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/error.h"

#include <gtest/gtest.h>

namespace vitrail {
namespace {

TEST(Error, KeepsItsThreePartsInTheirOrder) {
  const Error error("recipe.json", "a number of epochs", "\"many\"");
  EXPECT_STREQ(error.what(), "recipe.json: expected a number of epochs, got \"many\"");
  ASSERT_NE(error.parts(), nullptr);
  EXPECT_EQ(error.parts()->where, "recipe.json");
  EXPECT_EQ(error.parts()->expected, "a number of epochs");
  EXPECT_EQ(error.parts()->got, "\"many\"");
  const Error copy = error;
  EXPECT_EQ(copy.parts(), error.parts());
}

TEST(Error, OfOneSentenceHasNoParts) {
  const Error error("the disk is full");
  EXPECT_STREQ(error.what(), "the disk is full");
  EXPECT_EQ(error.parts(), nullptr);
}

TEST(Str, ConcatenatesAsAStreamPrints) {
  EXPECT_EQ(str("rows ", 3, ' ', -1.5, ' ', true, std::string("x")), "rows 3 -1.5 1x");
  EXPECT_EQ(str(7), "7");
}

}  // namespace
}  // namespace vitrail
