// SPDX-License-Identifier: Apache-2.0
// Access to environment variables.
#include "vitrail/base/env_internal.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace vitrail {
namespace {

TEST(Environment, ReturnsTheValueOrNulloptIfUnsetOrEmpty) {
  ::setenv("VITRAIL_TEST_VARIABLE", "a b", 1);
  EXPECT_EQ(environment("VITRAIL_TEST_VARIABLE"), "a b");
  ::setenv("VITRAIL_TEST_VARIABLE", "", 1);
  EXPECT_EQ(environment("VITRAIL_TEST_VARIABLE"), std::nullopt);
  ::unsetenv("VITRAIL_TEST_VARIABLE");
  EXPECT_EQ(environment("VITRAIL_TEST_VARIABLE"), std::nullopt);
}

}  // namespace
}  // namespace vitrail
