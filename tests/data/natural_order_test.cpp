// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/natural_order_internal.h"

#include <algorithm>
#include <random>

#include "tests/data/support.h"

namespace vitrail::data {
namespace {

TEST(NaturalOrder, NumbersCompareByValueAndLettersWithoutCase) {
  const std::vector<std::string> sorted{"",    "0",    "01",   "1",  "2",    "9",     "10",  "99999999999999999999",
                                        "a",   "a1",   "a01b", "A2", "a2b3", "a2b10", "a10", "b",
                                        "B 2", "b 10", "c"};
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> names = sorted;
    std::shuffle(names.begin(), names.end(), random);
    std::sort(names.begin(), names.end(), natural_less);
    EXPECT_EQ(names, sorted);
  }
}

TEST(NaturalOrder, IsAStrictTotalOrder) {
  const std::vector<std::string> names{"1", "01", "a", "A", "a1", "a01", "1a", "é", ""};
  for (const std::string& a : names) {
    for (const std::string& b : names) {
      EXPECT_EQ(natural_less(a, b) + natural_less(b, a), a == b ? 0 : 1) << a << " " << b;
    }
  }
}

}  // namespace
}  // namespace vitrail::data
