// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/holdout_split.h"

#include <algorithm>
#include <map>
#include <set>

#include "tests/data/noise_dataset.h"
#include "tests/data/support.h"

namespace vitrail::data {
namespace {

TEST(HoldoutSplit, IsStratifiedAndReproducible) {
  const Noise dataset(100, {}, 4);  // class sizes 17, 17, 17 and 49
  const HoldoutSplit split = holdout_split(dataset, 20, 1);
  EXPECT_EQ(split.held_out.size(), 20u);
  EXPECT_EQ(split.train.size(), 80u);
  std::set<int64_t> all(split.train.begin(), split.train.end());
  all.insert(split.held_out.begin(), split.held_out.end());
  EXPECT_EQ(all.size(), 100u);
  EXPECT_TRUE(std::is_sorted(split.train.begin(), split.train.end()));
  std::map<int64_t, int> counts;
  for (const int64_t i : split.held_out) ++counts[dataset.label(i)];
  for (const auto& [label, count] :
       std::map<int64_t, std::pair<int, int>>{{0, {3, 4}}, {1, {3, 4}}, {2, {3, 4}}, {3, {9, 10}}}) {
    EXPECT_GE(counts[label], count.first);
    EXPECT_LE(counts[label], count.second);
  }
  EXPECT_EQ(holdout_split(dataset, 20, 1).held_out, split.held_out);
  EXPECT_NE(holdout_split(dataset, 20, 2).held_out, split.held_out);
  EXPECT_TRUE(holdout_split(dataset, 0, 1).held_out.empty());
  EXPECT_THROW(holdout_split(dataset, 100, 1), Error);
  EXPECT_THROW(holdout_split(dataset, -1, 1), Error);
}

TEST(HoldoutSplit, KeepsAnImageOfEachClassForTrainingWhereItCan) {
  const auto trained_classes = [](const Dataset& dataset, int64_t held_out) {
    const HoldoutSplit split = holdout_split(dataset, held_out, 0);
    EXPECT_EQ(split.held_out.size(), static_cast<size_t>(held_out));
    EXPECT_EQ(split.train.size() + split.held_out.size(), static_cast<size_t>(dataset.size()));
    std::set<int64_t> labels;
    for (const int64_t i : split.train) labels.insert(dataset.label(i));
    return labels.size();
  };
  for (const int64_t size : {8, 9, 13, 30}) {
    const Noise dataset(size, {}, 6);
    for (int64_t held_out = 0; held_out <= size - 6; ++held_out)
      EXPECT_EQ(trained_classes(dataset, held_out), 6u) << held_out << " of " << size;
    EXPECT_EQ(trained_classes(dataset, size - 3), 3u) << size;
  }
}

TEST(HoldoutSplit, TakesEqualPartsOfCifarsClasses) {
  VITRAIL_NEED_ASSETS(assets);
  const auto dataset = open_dataset(assets / "cifar10/cifar10_jpeg.zip", {.split = "train"});
  const HoldoutSplit split = holdout_split(*dataset, 5000, 0);
  EXPECT_EQ(split.train.size(), 45000u);
  std::map<int64_t, int> counts;
  for (const int64_t i : split.held_out) ++counts[dataset->label(i)];
  EXPECT_EQ(counts.size(), 10u);
  for (const auto& [label, count] : counts) EXPECT_EQ(count, 500) << label;
}

TEST(HoldoutSplit, DefaultIsAFifthOrTwentyOfEachClassAtMostAThird) {
  EXPECT_EQ(default_holdout(1000, 2), 200);
  EXPECT_EQ(default_holdout(1000, 15), 300);  // 20 of each class
  EXPECT_EQ(default_holdout(180, 3), 60);     // 20 of each class
  EXPECT_EQ(default_holdout(500, 10), 166);   // a third
  EXPECT_EQ(default_holdout(50'000, 10), 5000);
  EXPECT_EQ(default_holdout(2, 2), 0);
}

}  // namespace
}  // namespace vitrail::data
