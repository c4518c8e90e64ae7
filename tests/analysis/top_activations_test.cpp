// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/top_activations.h"

#include <gtest/gtest.h>

#include <cmath>

namespace vitrail::analysis {
namespace {

using Rows = std::vector<std::array<float, 3>>;

Rows rows_of(const TopActivations& top) {
  Rows rows;
  for (const PatchActivation& at : top.largest_first())
    rows.push_back({static_cast<float>(at.image), static_cast<float>(at.patch), at.value});
  return rows;
}

TEST(TopActivations, AreTheLargestOfAllImages) {
  TopActivations top(3);
  top.add(0, Tensor::from<float>({4}, {1, -2, 5, 3}));
  EXPECT_EQ(rows_of(top), (Rows{{0, 2, 5}, {0, 3, 3}, {0, 0, 1}}));
  top.add(1, Tensor::from<float>({2}, {4, 0}));
  EXPECT_EQ(rows_of(top), (Rows{{0, 2, 5}, {1, 0, 4}, {0, 3, 3}}));
  top.add(2, Tensor::from<float>({2, 2}, {9, 8, 9, 2}).select(1, 0));  // strided
  EXPECT_EQ(rows_of(top), (Rows{{2, 0, 9}, {2, 1, 9}, {0, 2, 5}}));
}

TEST(TopActivations, OfEqualOnesTheFirstIsKeptAndNanIsLeftOut) {
  TopActivations top(2);
  top.add(0, Tensor::from<float>({3}, {std::nanf(""), 1, 1}));
  top.add(1, Tensor::from<float>({2}, {1, std::nanf("")}));
  EXPECT_EQ(rows_of(top), (Rows{{0, 1, 1}, {0, 2, 1}}));
  TopActivations none(0);
  none.add(0, Tensor::from<float>({1}, {1}));
  EXPECT_TRUE(none.largest_first().empty());
}

}  // namespace
}  // namespace vitrail::analysis
