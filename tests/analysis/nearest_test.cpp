// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/nearest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/analysis/knn.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/l2_normalize.h"

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

TEST(SimilarPairs, OfTheThresholdItselfCount) {
  const Tensor rows = Tensor::from<float>({3, 2}, {1, 0, 0.5f, 0, 0, 1});
  std::vector<std::array<int64_t, 2>> pairs;
  const auto collect = [&](int64_t i, int64_t j, float) { pairs.push_back({i, j}); };
  similar_pairs(TensorRows(rows), 0.5f, collect);
  EXPECT_EQ(pairs, (std::vector<std::array<int64_t, 2>>{{0, 1}}));
  pairs.clear();
  similar_pairs(TensorRows(rows), std::nextafter(0.5f, 1.0f), collect);
  EXPECT_TRUE(pairs.empty());
  similar_pairs(TensorRows(Tensor::zeros({0, 2})), 0, collect);
  similar_pairs(TensorRows(Tensor::full({1, 2}, 1)), 0, collect);
  EXPECT_TRUE(pairs.empty());
}

// The lowest rows remain of many with equal scores, in several blocks, whatever the number of threads.
TEST(NearestRows, OfEqualOnesTheLowestRemain) {
  const Tensor rows = Tensor::full({3000, 3}, 1);
  for (const int64_t better : {5, 700, 2999}) rows.select(0, better).copy_(Tensor::full({3}, 2));
  for (const int threads : {1, 3}) {
    const ThreadCount count(threads);
    const auto nearest = nearest_rows(Tensor::full({1, 3}, 1), TensorRows(rows), 6);
    const int64_t want[] = {5, 700, 2999, 0, 1, 2};
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ(nearest[0][i].row, want[i]) << threads << " threads, rank " << i;
  }
}

TEST(TensorRows, AreReadFromAnyRowInFloat) {
  const Tensor rows = Tensor::from<double>({2, 3}, {1, 2, 3, 4, 5, 6}).transpose(0, 1);
  const TensorRows source(rows);
  EXPECT_EQ(source.count(), 3);
  EXPECT_EQ(source.width(), 2);
  std::vector<float> values(4);
  source.read(1, 2, values.data());
  EXPECT_EQ(values, (std::vector<float>{2, 5, 3, 6}));
  EXPECT_THROW(TensorRows(Tensor::zeros({3})), Error);
}

TEST(NormalizeRow, GivesTheNormAndLeavesZeros) {
  std::vector<float> row{3, 0, -4}, zeros(3), tiny{1e-30f, 0, 0};
  EXPECT_DOUBLE_EQ(kernels::normalize_row(row.data(), 3), 5);
  EXPECT_FLOAT_EQ(row[2], -0.8f);
  EXPECT_EQ(kernels::normalize_row(zeros.data(), 3), 0);
  EXPECT_EQ(zeros, std::vector<float>(3));
  EXPECT_NEAR(kernels::normalize_row(tiny.data(), 3), 1e-30, 1e-36);
  EXPECT_TRUE(std::isfinite(tiny[0]));
}

TEST(NearestRows, ErrorsNameTheRowOrWhatIsWrong) {
  using testing::error_of;
  const Tensor rows = Tensor::full({600, 4}, 1), nan = rows.clone(), infinite = rows.clone();
  nan.data<float>()[4 * 270 + 3] = std::numeric_limits<float>::quiet_NaN();
  infinite.data<float>()[4 * 511] = -std::numeric_limits<float>::infinity();
  const TensorRows good(rows);
  const ThreadCount one(1);
  const auto ignore = [](int64_t, int64_t, float) {};
  EXPECT_ERROR(error_of([&] { nearest_rows(rows, TensorRows(nan), 1); }), "row 270", "NaN or infinity");
  EXPECT_ERROR(error_of([&] { nearest_rows(rows, TensorRows(infinite), 1); }), "row 511", "NaN or infinity");
  EXPECT_ERROR(error_of([&] { nearest_rows(infinite, good, 1); }), "search", "NaN or infinity");
  EXPECT_ERROR(error_of([&] { nearest_rows(rows, good, 0); }), "search", "0");
  EXPECT_ERROR(error_of([&] { nearest_rows(rows, good, -3); }), "search", "-3");
  EXPECT_TRUE(testing::contains(error_of([&] {
                                  nearest_rows(Tensor::full({2, 5}, 1), good, 1);
                                }),
                                "search: expected queries [m, 4], got "));
  EXPECT_THROW(nearest_rows(Tensor::full({4}, 1), good, 1), Error);
  EXPECT_THROW(nearest_rows(Tensor::full({1, 2, 4}, 1), good, 1), Error);
  EXPECT_ERROR(error_of([&] { similar_pairs(TensorRows(nan), 2, ignore); }), "row 270", "NaN or infinity");
  EXPECT_ERROR(error_of([&] { similar_pairs(TensorRows(infinite), 2, ignore); }), "row 511", "NaN or infinity");
  EXPECT_TRUE(testing::contains(error_of([] { TensorRows(Tensor::zeros({3})); }), "vectors: expected a tensor [n, D]"));
  EXPECT_THROW(TensorRows(Tensor::zeros({3, 1, 2})), Error);
}

// One row less than a block, a block, and one more; the same for the queries of a pass.
TEST(NearestRows, BlocksAndPassesOfAllSizesHaveAllRows) {
  for (const int64_t count : {1, 2, 255, 256, 257, 511, 512, 513}) {
    const Tensor rows = Tensor::empty({count, 2});
    for (int64_t i = 0; i < count; ++i) {
      rows.data<float>()[2 * i] = static_cast<float>(i * 7 % count);
      rows.data<float>()[2 * i + 1] = static_cast<float>(i);
    }
    // Query 0 asks for the largest first value, query 1 for the smallest second one.
    const Tensor queries = Tensor::from<float>({2, 2}, {1, 0, 0, -1});
    const auto nearest = nearest_rows(queries, TensorRows(rows), count + 5);
    ASSERT_EQ(nearest.size(), 2U);
    ASSERT_EQ(static_cast<int64_t>(nearest[0].size()), count);
    std::vector<int64_t> order(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) order[static_cast<size_t>(i)] = i;
    std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return a * 7 % count > b * 7 % count; });
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      EXPECT_EQ(nearest[0][at].row, order[at]) << count;
      EXPECT_EQ(nearest[0][at].score, static_cast<float>(order[at] * 7 % count)) << count;
      EXPECT_EQ(nearest[1][at].row, i) << count;
      EXPECT_EQ(nearest[1][at].score, static_cast<float>(-i)) << count;
    }
  }
  const Tensor one = Tensor::from<float>({1, 1}, {2});
  for (const int64_t count : {1023, 1024, 1025, 2049}) {
    const Tensor queries = Tensor::empty({count, 1});
    for (int64_t i = 0; i < count; ++i) queries.data<float>()[i] = static_cast<float>(i);
    const auto nearest = nearest_rows(queries, TensorRows(one), 1);
    ASSERT_EQ(static_cast<int64_t>(nearest.size()), count);
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(nearest[static_cast<size_t>(i)][0].score, static_cast<float>(2 * i));
  }
}

// Pairs within a block and of two blocks, with their scores; a score may be negative.
TEST(SimilarPairs, HaveTheirScoresInAndBetweenBlocks) {
  const int64_t count = 258;
  const Tensor rows = Tensor::zeros({count, 3});
  const auto set = [&](int64_t row, float a, float b, float c) {
    rows.select(0, row).copy_(Tensor::from<float>({3}, {a, b, c}));
  };
  for (int64_t i = 0; i < count; ++i) set(i, 0, 0, 0);
  set(3, 1, 2, 0);
  set(255, 2, -1, 5);
  set(256, 4, 1, 0);
  set(257, -3, 0, 1);
  std::map<std::pair<int64_t, int64_t>, float> pairs;
  const auto collect = [&](int64_t i, int64_t j, float score) { pairs[{i, j}] = score; };
  similar_pairs(TensorRows(rows), 0.5F, collect);
  EXPECT_EQ(pairs, (std::map<std::pair<int64_t, int64_t>, float>{{{3, 256}, 6}, {{255, 256}, 7}}));
  pairs.clear();
  similar_pairs(TensorRows(rows), -1, collect);
  EXPECT_EQ(static_cast<int64_t>(pairs.size()), count * (count - 1) / 2 - 2);
  EXPECT_FALSE(pairs.contains({3, 257}));    // -3
  EXPECT_FALSE(pairs.contains({256, 257}));  // -12
  EXPECT_EQ((pairs[{255, 257}]), -1);
}

TEST(NormalizeRow, NormsBelowTheLimitCountAsIt) {
  for (const auto& [value, want] : {std::pair(2e-12F, 1.0), std::pair(1e-13F, 0.1), std::pair(-5e-13F, -0.5)}) {
    std::vector<float> row{0, value};
    EXPECT_NEAR(kernels::normalize_row(row.data(), 2), std::abs(value), 1e-18);
    EXPECT_EQ(row[0], 0);
    EXPECT_NEAR(row[1], want, 1e-6) << value;
  }
  std::vector<float> row{3, 4, 12};
  EXPECT_DOUBLE_EQ(kernels::normalize_row(row.data(), 2), 5) << "the third value is not of the row";
  EXPECT_EQ(row[2], 12);
  EXPECT_EQ(kernels::normalize_row(static_cast<float*>(nullptr), 0), 0);
}

}  // namespace
}  // namespace vitrail::analysis
