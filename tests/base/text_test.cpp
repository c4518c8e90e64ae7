// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/text.h"

#include <gtest/gtest.h>

#include <vector>

namespace vitrail {
namespace {

TEST(Counted, ANounOfOneIsSingular) {
  EXPECT_EQ(counted(1, "image"), "1 image");
  for (const int count : {0, 2}) EXPECT_EQ(counted(count, "image"), str(count, " images"));
}

TEST(Join, SeparatorsStandBetweenTheItemsOnly) {
  EXPECT_EQ(join(std::vector<std::string>{}), "");
  EXPECT_EQ(join(std::vector<double>{0.5}), "0.5");
  EXPECT_EQ(join(std::vector{"a", "", "b"}, "|"), "a||b");
  EXPECT_EQ(join(std::vector{1, 2}, " or ", [](int value) { return value * 10; }), "10 or 20");
}

TEST(JoinFirst, CountsTheItemsThatItLeavesOut) {
  const std::vector<std::string> items{"a", "bb", "ccc"};
  EXPECT_EQ(join_first(3, items), "a, bb, ccc");
  EXPECT_EQ(join_first(1, items, ", ", &std::string::size), "1 and 2 more");
}

}  // namespace
}  // namespace vitrail
