// SPDX-License-Identifier: Apache-2.0
#include "vitrail/anomaly/coreset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/parallel.h"

namespace vitrail::anomaly {
namespace {

TEST(Coreset, HasARowOfEachCluster) {
  const Tensor rows = Tensor::randn({60, 3}, 1);
  for (int64_t i = 0; i < 60; ++i) rows.data<float>()[3 * i] += static_cast<float>(100 * (i % 6));
  for (const int64_t seed : {0, 1, 2}) {
    std::set<int64_t> clusters;
    for (const int64_t row : coreset(rows, 6, seed)) clusters.insert(row % 6);
    EXPECT_EQ(clusters.size(), 6u);
  }
}

// Wider rows are projected.
TEST(Coreset, DependsOnTheSeedAlone) {
  const Tensor rows = Tensor::randn({3000, 200}, 2);
  const auto with = [&](int threads, int64_t seed) {
    const ThreadCount count(threads);
    return coreset(rows, 40, seed);
  };
  const auto chosen = with(1, 0);
  EXPECT_EQ(chosen, with(3, 0));
  EXPECT_NE(chosen, with(1, 1));
  EXPECT_TRUE(std::ranges::is_sorted(chosen));
  EXPECT_EQ(std::set(chosen.begin(), chosen.end()).size(), 40u);
}

TEST(Coreset, OfAllRowsIsAll) {
  EXPECT_EQ(coreset(Tensor::randn({3, 2}, 3), 3, 0), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_ERROR(testing::error_of([] { coreset(Tensor::randn({3, 2}, 3), 4, 0); }), "coreset", "4");
}

}  // namespace
}  // namespace vitrail::anomaly
