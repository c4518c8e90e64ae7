// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/round_up_internal.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace vitrail {
namespace {

TEST(RoundUp, GivesTheSmallestMultipleThatIsAtLeastTheNumber) {
  const int64_t cases[][3] = {{0, 7, 0},
                              {1, 7, 7},
                              {6, 7, 7},
                              {7, 7, 7},
                              {8, 7, 14},
                              {14, 7, 14},
                              {15, 7, 21},
                              {5, 1, 5},
                              {1, 64, 64},
                              {64, 64, 64},
                              {65, 64, 128},
                              {127, 64, 128},
                              {int64_t{1} << 40, 3, (int64_t{1} << 40) + 2}};
  for (const auto& [n, step, want] : cases) EXPECT_EQ(round_up(n, step), want) << n << " by " << step;
}

TEST(CeilDiv, CountsAPartOfADivisorAsOne) {
  for (const auto& [n, want] : {std::pair(0, 0), {1, 1}, {7, 1}, {8, 2}}) EXPECT_EQ(ceil_div(n, 7), want) << n;
}

}  // namespace
}  // namespace vitrail
