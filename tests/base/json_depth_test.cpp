// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/json_depth_internal.h"

#include <gtest/gtest.h>

namespace vitrail {
namespace {

TEST(JsonDepth, CountsOpenObjectsAndArrays) {
  EXPECT_EQ(json_depth("1"), 0);
  EXPECT_EQ(json_depth("{}"), 1);
  EXPECT_EQ(json_depth(R"([{"a": [1]}, {"b": 2}])"), 3);
  EXPECT_EQ(json_depth("[[[[["), 5);
}

TEST(JsonDepth, LeavesOutBracketsInStrings) {
  EXPECT_EQ(json_depth(R"({"[[[": "{{\"[[\\"})"), 1);
  EXPECT_EQ(json_depth(R"(["\\", ["]"]])"), 2);
}

}  // namespace
}  // namespace vitrail
