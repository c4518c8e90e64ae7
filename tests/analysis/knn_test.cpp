// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/knn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"

namespace vitrail::analysis {
namespace {

// Four unit vectors in the plane, at 0°, 10°, 20° and 90°.
Tensor directions() {
  std::vector<float> values;
  for (const double degrees : {0.0, 10.0, 20.0, 90.0}) {
    values.push_back(static_cast<float>(3 * std::cos(degrees * M_PI / 180)));
    values.push_back(static_cast<float>(3 * std::sin(degrees * M_PI / 180)));
  }
  return normalized_rows(Tensor::from<float>({4, 2}, values));
}

TEST(Knn, NormalisesRows) {
  const Tensor rows = normalized_rows(Tensor::from<float>({2, 2}, {3, 4, 0, 0}));
  EXPECT_FLOAT_EQ(rows.data<float>()[0], 0.6f);
  EXPECT_FLOAT_EQ(rows.data<float>()[1], 0.8f);
  EXPECT_EQ(rows.data<float>()[2], 0.0f);
}

TEST(Knn, NeighboursVoteByExpOfTheirCosine) {
  const Tensor query = normalized_rows(Tensor::from<float>({1, 2}, {1, 0}));
  const Tensor votes = knn_votes(directions(), {0, 1, 1, 2}, query, 3, {.k = 3, .temperature = 0.5});
  const auto weight = [](double degrees) { return std::exp((std::cos(degrees * M_PI / 180) - 1) / 0.5); };
  EXPECT_NEAR(votes.data<float>()[0], 1, 1e-5);
  EXPECT_NEAR(votes.data<float>()[1], weight(10) + weight(20), 1e-5);
  EXPECT_EQ(votes.data<float>()[2], 0.0f);
}

TEST(Knn, TheDefaultTemperatureIsThatOfThePapers) {
  const Tensor query = normalized_rows(Tensor::from<float>({1, 2}, {1, 0}));
  const Tensor votes = knn_votes(directions(), {0, 1, 2, 2}, query, 3, {.k = 2});
  EXPECT_NEAR(votes.data<float>()[1] / votes.data<float>()[0], std::exp((std::cos(M_PI / 18) - 1) / 0.07), 1e-5);
}

TEST(Knn, VotesAreFiniteAtEveryTemperature) {
  const Tensor query = normalized_rows(Tensor::from<float>({1, 2}, {1, 0}));
  for (const double temperature : {1e-300, 1e-4, 1e4, 1e300}) {
    const Tensor votes = knn_votes(directions(), {0, 1, 1, 2}, query, 3, {.k = 3, .temperature = temperature});
    EXPECT_EQ(votes.data<float>()[0], 1.0f);
    EXPECT_NEAR(votes.data<float>()[1], temperature < 1 ? 0 : 2, 1e-3) << temperature;
  }
}

// Queries go through in chunks; each has the votes that it has by itself.
TEST(Knn, EveryQueryOfALargeSetHasItsOwnVotes) {
  const int64_t queries = 600;
  const Tensor train = normalized_rows(Tensor::randn({30, 6}, 1));
  const Tensor all = normalized_rows(Tensor::randn({queries, 6}, 2));
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 30; ++i) labels.push_back(i % 7);
  const Tensor votes = knn_votes(train, labels, all, 7, {.k = 5, .temperature = 0.3});
  for (int64_t q = 0; q < queries; ++q) {
    std::vector<std::pair<double, size_t>> nearest;  // minus the cosine, index
    for (int64_t t = 0; t < 30; ++t) {
      double cosine = 0;
      for (int64_t i = 0; i < 6; ++i) {
        cosine += static_cast<double>(train.data<float>()[t * 6 + i]) * all.data<float>()[q * 6 + i];
      }
      nearest.emplace_back(-cosine, t);
    }
    std::sort(nearest.begin(), nearest.end());
    double want[7] = {};
    for (size_t i = 0; i < 5; ++i)
      want[labels[nearest[i].second]] += std::exp((nearest[0].first - nearest[i].first) / 0.3);
    for (int64_t c = 0; c < 7; ++c) EXPECT_NEAR(votes.data<float>()[q * 7 + c], want[c], 1e-4) << q << ' ' << c;
  }
}

TEST(Knn, UniformVotesCountOneAndKMayExceedTheData) {
  const Tensor query = normalized_rows(Tensor::from<float>({2, 2}, {1, 0, 0, 1}));
  const Tensor votes = knn_votes(directions(), {0, 1, 1, 2}, query, 3, {.k = 50, .plain = true});
  for (int64_t q = 0; q < 2; ++q) {
    EXPECT_EQ(votes.data<float>()[q * 3], 1.0f);
    EXPECT_EQ(votes.data<float>()[q * 3 + 1], 2.0f);
    EXPECT_EQ(votes.data<float>()[q * 3 + 2], 1.0f);
  }
}

TEST(Knn, InvalidArgumentsAreErrors) {
  const Tensor rows = directions();
  EXPECT_THROW(knn_votes(rows, {0, 1}, rows, 3), Error);
  EXPECT_THROW(knn_votes(rows, {0, 1, 1, 2}, rows, 3, {.k = 0}), Error);
  EXPECT_THROW(knn_votes(rows, {0, 1, 1, 2}, rows, 3, {.temperature = 0}), Error);
  EXPECT_THROW(normalized_rows(Tensor::full({}, 1)), Error);
  EXPECT_EQ(normalized_rows(Tensor::zeros({3, 0})).shape(), (Shape{3, 0}));
  EXPECT_EQ(knn_votes(rows, {0, 1, 1, 2}, Tensor::zeros({0, 2}), 3).shape(), (Shape{0, 3}));
}

TEST(Knn, NormalisesVectorsOfAnyShapeAndTypeAndLeavesItsInput) {
  const Tensor given = Tensor::empty({3, 50, 2}, DType::f64);
  for (int64_t i = 0; i < 150; ++i) {
    given.data<double>()[2 * i] = 3.0 * static_cast<double>(i + 1);
    given.data<double>()[2 * i + 1] = -4.0 * static_cast<double>(i + 1);
  }
  const Tensor result = normalized_rows(given);
  EXPECT_EQ(result.shape(), (Shape{3, 50, 2}));
  ASSERT_EQ(result.dtype(), DType::f32);
  for (int64_t i = 0; i < 150; ++i) {
    EXPECT_FLOAT_EQ(result.data<float>()[2 * i], 0.6F) << i;
    EXPECT_FLOAT_EQ(result.data<float>()[2 * i + 1], -0.8F) << i;
  }
  const Tensor rows = Tensor::from<float>({1, 2}, {3, 4});
  EXPECT_FLOAT_EQ(normalized_rows(rows).data<float>()[0], 0.6F);
  EXPECT_EQ(rows.data<float>()[0], 3) << "the input is not changed";
  EXPECT_FLOAT_EQ(normalized_rows(Tensor::from<float>({2}, {0, -2})).data<float>()[1], -1);
}

TEST(Knn, OptionsAreTwentyNeighboursAndWeightedVotes) {
  EXPECT_EQ(KnnOptions{}.k, 20);
  EXPECT_EQ(KnnOptions{}.temperature, 0.07);
  EXPECT_FALSE(KnnOptions{}.plain);
  const Tensor train = Tensor::full({30, 2}, 1);  // all are at the same distance: the first ones are taken
  std::vector<int64_t> labels(30, 1);
  for (size_t i = 0; i < 5; ++i) labels[i] = 0;
  const Tensor votes = knn_votes(train, labels, Tensor::full({1, 2}, 1), 4);
  const float* vote = votes.data<float>();
  EXPECT_EQ((std::vector<float>(vote, vote + 4)), (std::vector<float>{5, 15, 0, 0}));
}

TEST(Knn, ErrorsNameWhatIsWrong) {
  const Tensor rows = directions();
  const auto message = [&](const std::vector<int64_t>& labels, const KnnOptions& options) {
    return testing::error_of([&] { knn_votes(rows, labels, rows, 3, options); });
  };
  EXPECT_ERROR(message({0, 1, 1, 2}, {.k = -1}), "k-NN", "-1");
  EXPECT_ERROR(message({0, 1, 1, 2}, {.temperature = -0.5}), "k-NN", "-0.5");
  EXPECT_ERROR(message({0, 1, 1, 2}, {.temperature = NAN}), "k-NN", "nan");
  EXPECT_ERROR(message({0, 1, 1, 2, 2}, {}), "k-NN", "5");
  EXPECT_ERROR(testing::error_of([&] { knn_votes(Tensor::zeros({0, 2}), {}, rows, 3); }), "k-NN", "0");
  EXPECT_TRUE(testing::contains(testing::error_of([] { normalized_rows(Tensor::full({}, 1)); }),
                                "features: expected vectors [..., D], got "));
}

}  // namespace
}  // namespace vitrail::analysis
