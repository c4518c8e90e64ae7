// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/nearest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "vitrail/analysis/knn.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail::analysis {
namespace {

double dot(const Tensor& a, int64_t i, const Tensor& b, int64_t j) {
  double sum = 0;
  const int64_t width = a.size(1);
  for (int64_t c = 0; c < width; ++c)
    sum += static_cast<double>(a.data<float>()[i * width + c]) * b.data<float>()[j * width + c];
  return sum;
}

// More rows than several blocks have.
Tensor many_rows() { return normalized_rows(Tensor::randn({1111, 17}, 1)); }

TEST(NearestRows, AreThoseOfAllInnerProducts) {
  const Tensor rows = many_rows(), queries = normalized_rows(Tensor::randn({13, 17}, 2));
  const auto nearest = nearest_rows(queries, TensorRows(rows), 25);
  ASSERT_EQ(nearest.size(), 13u);
  for (int64_t q = 0; q < 13; ++q) {
    std::vector<std::pair<double, int64_t>> all;
    for (int64_t r = 0; r < rows.size(0); ++r) all.emplace_back(-dot(queries, q, rows, r), r);
    std::ranges::sort(all);
    const std::vector<Neighbor>& found = nearest[static_cast<size_t>(q)];
    ASSERT_EQ(found.size(), 25u);
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].row, all[i].second) << "query " << q << ", rank " << i;
      EXPECT_NEAR(found[i].score, -all[i].first, 17 * std::numeric_limits<float>::epsilon());
    }
  }
}

// More queries than one pass over the rows takes.
TEST(NearestRows, EveryQueryOfManyFindsItself) {
  const Tensor rows = normalized_rows(Tensor::randn({1030, 17}, 3));
  const auto nearest = nearest_rows(rows, TensorRows(rows), 1);
  for (int64_t q = 0; q < rows.size(0); ++q) EXPECT_EQ(nearest[static_cast<size_t>(q)][0].row, q);
}

TEST(NearestRows, DoNotDependOnTheNumberOfThreads) {
  const Tensor rows = many_rows(), queries = normalized_rows(Tensor::randn({3, 17}, 2));
  const auto with_threads = [&](int threads) {
    const ThreadCount count(threads);
    return nearest_rows(queries, TensorRows(rows), 7);
  };
  const auto one = with_threads(1), four = with_threads(4);
  for (size_t q = 0; q < 3; ++q) {
    for (size_t i = 0; i < 7; ++i) {
      EXPECT_EQ(one[q][i].row, four[q][i].row);
      EXPECT_EQ(one[q][i].score, four[q][i].score);
    }
  }
}

TEST(NearestRows, OfEqualOnesTheLowerComesFirst) {
  const auto nearest = nearest_rows(Tensor::full({1, 4}, 1), TensorRows(Tensor::full({700, 4}, 1)), 3);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(nearest[0][static_cast<size_t>(i)].row, i);
}

TEST(NearestRows, AreAllRowsIfThereAreFewerThanK) {
  EXPECT_EQ(nearest_rows(Tensor::full({1, 4}, 1), TensorRows(Tensor::full({2, 4}, 1)), 3)[0].size(), 2u);
  EXPECT_EQ(nearest_rows(Tensor::full({1, 4}, 1), TensorRows(Tensor::zeros({0, 4})), 3)[0].size(), 0u);
}

TEST(NearestRows, RefusesWhatHasNoOrder) {
  const Tensor rows = Tensor::full({300, 4}, 1), nan = rows.clone();
  nan.data<float>()[4 * 270] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(nearest_rows(rows, TensorRows(nan), 1), Error);
  EXPECT_THROW(nearest_rows(nan, TensorRows(rows), 1), Error);
  EXPECT_THROW(nearest_rows(Tensor::full({1, 5}, 1), TensorRows(rows), 1), Error);
  EXPECT_THROW(nearest_rows(rows, TensorRows(rows), 0), Error);
  EXPECT_THROW(similar_pairs(TensorRows(nan), 0.5f, [](int64_t, int64_t, float) {}), Error);
}

TEST(SimilarPairs, AreAllPairsAboveTheThreshold) {
  const Tensor rows = many_rows();
  std::map<std::pair<int64_t, int64_t>, float> pairs;
  similar_pairs(TensorRows(rows), 0.6f, [&](int64_t i, int64_t j, float score) {
    EXPECT_TRUE(pairs.emplace(std::pair(i, j), score).second) << i << " " << j << " twice";
  });
  size_t expected = 0;
  for (int64_t i = 0; i < rows.size(0); ++i) {
    for (int64_t j = i + 1; j < rows.size(0); ++j) {
      const double score = dot(rows, i, rows, j);
      if (score < 0.6) continue;
      ++expected;
      EXPECT_TRUE(pairs.contains({i, j})) << i << " " << j << ": " << score;
    }
  }
  EXPECT_GT(expected, 100u);
  EXPECT_EQ(pairs.size(), expected);
}

}  // namespace
}  // namespace vitrail::analysis
