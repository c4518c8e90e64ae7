// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/loader/sampler_internal.h"

#include <cmath>
#include <numeric>

#include "tests/data/noise_dataset.h"
#include "tests/data/support.h"
#include "vitrail/data/augment/random_draws_internal.h"
#include "vitrail/data/datasets/holdout_split.h"

namespace vitrail::data {
namespace {

using Indices = std::vector<int64_t>;

Indices sorted(Indices values) {
  std::sort(values.begin(), values.end());
  return values;
}

TEST(RandomDraws, ReachBothEndsAndNothingElse) {
  RandomStream random(random_key("draws"));
  for (const int64_t count : {1, 2, 5}) {
    std::set<int64_t> indices, integers;
    for (int i = 0; i < 500; ++i) {
      indices.insert(random_index(random, count));
      integers.insert(random_integer(random, -count, count));
    }
    EXPECT_EQ(indices.size(), static_cast<size_t>(count));
    EXPECT_EQ(*indices.begin(), 0);
    EXPECT_EQ(*indices.rbegin(), count - 1);
    EXPECT_EQ(integers.size(), static_cast<size_t>(2 * count + 1));
    EXPECT_EQ(*integers.begin(), -count);
    EXPECT_EQ(*integers.rbegin(), count);
  }
  for (int i = 0; i < 100; ++i) {
    const double value = random_uniform(random, -2, 3);
    EXPECT_TRUE(value >= -2 && value < 3);
  }
  EXPECT_EQ(random_uniform(random, 4, 4), 4);
}

TEST(EpochOrder, IsEveryPermutationEquallyOften) {
  std::map<Indices, int> counts;
  constexpr int kDraws = 12000;
  for (int epoch = 0; epoch < kDraws; ++epoch) ++counts[epoch_order({3, 5, 9}, true, 1, epoch)];
  EXPECT_EQ(counts.size(), 6u);
  for (const auto& [order, count] : counts) {
    EXPECT_EQ(sorted(order), (Indices{3, 5, 9}));
    EXPECT_NEAR(count, kDraws / 6, 5 * std::sqrt(kDraws / 6.0));
  }
  EXPECT_EQ(epoch_order({9, 3, 5}, false, 1, 4), (Indices{9, 3, 5}));
  EXPECT_EQ(epoch_order({}, true, 1, 0), Indices{});
  EXPECT_NE(epoch_order({1, 2, 3, 4, 5, 6, 7, 8}, true, 1, 0), epoch_order({1, 2, 3, 4, 5, 6, 7, 8}, true, 2, 0));
}

// In each epoch the classes differ by at most one sample; over all epochs each sample of a class is shown equally
// often, but for the pass that has begun.
TEST(BalancedOrder, PassesThroughEachClassBeforeItRepeats) {
  const std::vector<Indices> classes{{0, 1, 2, 3, 4, 5, 6}, {10, 11}, {20}};
  for (const int64_t size : {1, 3, 10, 11, 12}) {
    std::map<int64_t, int> shown;
    std::map<int64_t, int64_t> of_class;
    for (int64_t epoch = 0; epoch < 12; ++epoch) {
      const Indices order = balanced_order(classes, size, 3, epoch);
      ASSERT_EQ(order.size(), static_cast<size_t>(size));
      std::array<int64_t, 3> counts{};
      for (const int64_t sample : order)
        ++counts[static_cast<size_t>(sample / 10)], ++shown[sample], ++of_class[sample / 10];
      const auto [low, high] = std::minmax_element(counts.begin(), counts.end());
      EXPECT_LE(*high - *low, 1) << size;
      EXPECT_EQ(order, balanced_order(classes, size, 3, epoch));
    }
    for (size_t c = 0; c < 3; ++c) EXPECT_EQ(of_class[static_cast<int64_t>(c)], 12 * size / 3) << "of twelve epochs";
    if (size % 3 != 0) continue;  // else an epoch may leave out the last place of a class
    for (size_t c = 0; c < 3; ++c) {
      const int64_t total = 12 * size / 3, members = std::ssize(classes[c]);
      for (const int64_t sample : classes[c]) {
        EXPECT_GE(shown[sample], total / members) << sample;
        EXPECT_LE(shown[sample], (total + members - 1) / members) << sample;
      }
    }
  }
}

TEST(RankSlice, PartsABatchIntoPairsOfMirroredPositions) {
  for (int64_t total = 0; total <= 13; ++total) {
    for (int ranks = 1; ranks <= 4; ++ranks) {
      std::vector<int> seen(static_cast<size_t>(total));
      for (int rank = 0; rank < ranks; ++rank) {
        const RankSlice slice = rank_slice(total, rank, ranks);
        for (int64_t i = 0; i < slice.size(); ++i) {
          ++seen.at(static_cast<size_t>(slice.position(i)));
          EXPECT_EQ(slice.position(slice.size() - 1 - i), total - 1 - slice.position(i)) << total << " " << ranks;
          if (i == 0) continue;
          EXPECT_GT(slice.position(i), slice.position(i - 1));
        }
      }
      for (const int count : seen) EXPECT_EQ(count, 1) << total << " in " << ranks;
    }
  }
}

TEST(HoldoutSplit, QuotasAreThoseOfTheLargestRemainders) {
  for (const int64_t size : {7, 23, 100}) {
    for (const int64_t classes : {1, 3, 6}) {
      const Noise dataset(size, {}, classes);
      std::map<int64_t, int64_t> members;
      for (int64_t i = 0; i < size; ++i) ++members[dataset.label(i)];
      for (int64_t held_out = 0; held_out < size; held_out += 3) {
        const HoldoutSplit split = holdout_split(dataset, held_out, 5);
        std::map<int64_t, int64_t> counts;
        for (const int64_t sample : split.held_out) ++counts[dataset.label(sample)];
        Indices all = split.train;
        all.insert(all.end(), split.held_out.begin(), split.held_out.end());
        Indices expected(static_cast<size_t>(size));
        std::iota(expected.begin(), expected.end(), 0);
        EXPECT_EQ(sorted(all), expected);
        EXPECT_EQ(std::ssize(split.held_out), held_out);
        EXPECT_TRUE(std::is_sorted(split.train.begin(), split.train.end()));
        EXPECT_TRUE(std::is_sorted(split.held_out.begin(), split.held_out.end()));
        for (const auto& [a, count_a] : members) {
          const double quota = static_cast<double>(held_out * count_a) / static_cast<double>(size);
          EXPECT_LT(std::abs(static_cast<double>(counts[a]) - quota), 1) << size << " " << held_out;
          if (2 * held_out > size) continue;  // a class may have to keep an image
          for (const auto& [b, count_b] : members) {
            // A class that got one more has no smaller remainder, and of equal ones the lower index.
            const int64_t rest_a = held_out * count_a % size, rest_b = held_out * count_b % size;
            const bool more_a = counts[a] > held_out * count_a / size, more_b = counts[b] > held_out * count_b / size;
            const bool is_first = rest_a > rest_b || (rest_a == rest_b && a <= b);
            EXPECT_TRUE(is_first || !more_a || more_b) << size << " " << held_out;
          }
        }
      }
    }
  }
}

TEST(FoldSplit, FoldsAndTheirClassesHaveEqualSizes) {
  for (const int64_t size : {4, 13, 50}) {
    const Noise dataset(size, {}, 3);
    for (const int64_t folds : {int64_t{2}, int64_t{3}, size}) {
      std::vector<int> seen(static_cast<size_t>(size));
      std::map<int64_t, std::set<int64_t>> of_class;  // counts by class
      for (int64_t fold = 0; fold < folds; ++fold) {
        const HoldoutSplit split = fold_split(dataset, folds, fold, 2);
        EXPECT_GE(std::ssize(split.held_out), size / folds);
        EXPECT_LE(std::ssize(split.held_out), (size + folds - 1) / folds) << size << " in " << folds;
        EXPECT_EQ(std::ssize(split.held_out) + std::ssize(split.train), size);
        EXPECT_TRUE(std::is_sorted(split.held_out.begin(), split.held_out.end()));
        EXPECT_TRUE(std::is_sorted(split.train.begin(), split.train.end()));
        std::map<int64_t, int64_t> counts{{0, 0}, {1, 0}, {2, 0}};
        for (const int64_t sample : split.held_out)
          ++seen[static_cast<size_t>(sample)], ++counts[dataset.label(sample)];
        for (const auto& [label, count] : counts) of_class[label].insert(count);
      }
      for (const int count : seen) EXPECT_EQ(count, 1);
      for (const auto& [label, counts] : of_class) EXPECT_LE(*counts.rbegin() - *counts.begin(), 1) << label;
    }
  }
  const Noise dataset(5);
  EXPECT_NE(fold_split(Noise(50), 5, 0, 1).held_out, fold_split(Noise(50), 5, 0, 2).held_out);
  for (const auto& [folds, fold] : {std::pair<int64_t, int64_t>{1, 0}, {6, 0}, {5, 5}, {5, -1}})
    EXPECT_THROW(fold_split(dataset, folds, fold, 1), Error) << folds << " " << fold;
}

}  // namespace
}  // namespace vitrail::data
