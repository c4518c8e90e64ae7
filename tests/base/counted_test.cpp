// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/counted.h"

#include <gtest/gtest.h>

namespace vitrail {
namespace {

TEST(Counted, ANounOfOneIsSingular) {
  EXPECT_EQ(counted(1, "image"), "1 image");
  for (const int count : {0, 2}) EXPECT_EQ(counted(count, "image"), str(count, " images"));
}

}  // namespace
}  // namespace vitrail
