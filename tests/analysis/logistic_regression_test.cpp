// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/logistic_regression.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/analysis/strength_search.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail::analysis {
namespace {

using testing::close;
using testing::contains;
using testing::error_of;

testing::Golden golden() { return testing::read_golden(testing::fixture("analysis/logistic_regression.safetensors")); }

std::vector<int64_t> labels_of(const Tensor& tensor) {
  return {tensor.data<int64_t>(), tensor.data<int64_t>() + tensor.numel()};
}

std::string name_of(const std::string& dataset, double c) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", c);
  return dataset + "." + text;
}

// softmax of each row of logits [n, classes]
Tensor probabilities_of(const Tensor& logits) {
  const Tensor result = logits.clone();
  for (int64_t i = 0; i < logits.size(0); ++i) {
    double* row = result.data<double>() + i * logits.size(1);
    double sum = 0;
    for (int64_t k = 0; k < logits.size(1); ++k) sum += row[k] = std::exp(row[k]);
    for (int64_t k = 0; k < logits.size(1); ++k) row[k] /= sum;
  }
  return result;
}

double largest(const Tensor& values) {
  double result = 0;
  for (int64_t i = 0; i < values.numel(); ++i) result = std::max(result, std::abs(values.data<float>()[i]) * 1.0);
  return result;
}

// Both solutions have a gradient of norm up to √P times its largest element.  The objective is strongly convex with the
// stored curvature, so the gradient's norm divided by it bounds the distance to the minimum.
TEST(LogisticRegression, EqualsScikitLearn) {
  const testing::Golden expected = golden();
  for (const auto& test : nlohmann::json::parse(expected.config)) {
    const std::string name = test["name"];
    const Tensor& features = expected[name + ".features"];
    const std::vector<int64_t> labels = labels_of(expected[name + ".labels"]);
    for (const auto& fit : test["fits"]) {
      const std::string key = name_of(name, fit["c"]);
      const LinearClassifier got =
          fit_logistic_regression(features, labels, test["classes"], {.c = fit["c"], .tolerance = 1e-9});
      EXPECT_TRUE(got.converged) << key;
      EXPECT_LE(got.largest_gradient, 1e-9) << key;
      const double parameters = static_cast<double>(got.weight.numel() + got.bias.numel());
      const double distance =
          std::sqrt(parameters) * (1e-9 + fit["gradient"].get<double>()) / fit["curvature"].get<double>();
      EXPECT_TRUE(close(got.weight, expected[key + ".weight"], distance)) << key;
      EXPECT_TRUE(close(got.bias, expected[key + ".bias"], distance)) << key;
      // A probability changes by at most half as much as the logits, which are sums of D products and a bias.
      const double logit_error = distance * (static_cast<double>(features.size(1)) * largest(features) + 1);
      EXPECT_TRUE(close(probabilities_of(logits(got, features)), expected[key + ".probabilities"], logit_error / 2))
          << key;
    }
  }
}

TEST(LogisticRegression, DoesNotDependOnTheNumberOfThreads) {
  const testing::Golden data = golden();
  const std::vector<int64_t> labels = labels_of(data["five_classes.labels"]);
  const auto fit = [&](int threads) {
    const ThreadCount count(threads);
    return fit_logistic_regression(data["five_classes.features"], labels, 5);
  };
  EXPECT_TRUE(close(fit(1).weight, fit(3).weight, 0));
}

TEST(LogisticRegression, AStartAtTheSolutionNeedsNoIteration) {
  const testing::Golden data = golden();
  const std::vector<int64_t> labels = labels_of(data["three_classes.labels"]);
  const LinearClassifier first = fit_logistic_regression(data["three_classes.features"], labels, 3);
  EXPECT_GT(first.iterations, 3);
  EXPECT_EQ(fit_logistic_regression(data["three_classes.features"], labels, 3, {}, &first).iterations, 0);
}

TEST(LogisticRegression, StopsAtTheMaximumOfIterations) {
  const testing::Golden data = golden();
  const LinearClassifier got = fit_logistic_regression(
      data["three_classes.features"], labels_of(data["three_classes.labels"]), 3, {.c = 100, .max_iterations = 2});
  EXPECT_EQ(got.iterations, 2);
  EXPECT_FALSE(got.converged);
}

TEST(LogisticRegression, SeparableClassesWithAWeakPenaltyStayFinite) {
  const Tensor features = Tensor::from<float>({4, 1}, {-1000, -999, 999, 1000});
  const LinearClassifier got = fit_logistic_regression(features, {0, 0, 1, 1}, 2, {.c = 1e12});
  const Fit fit = fit_of(logits(got, features), {0, 0, 1, 1});
  EXPECT_EQ(fit.top1, 1);
  EXPECT_TRUE(std::isfinite(fit.loss));
}

TEST(LogisticRegression, InvalidArgumentsAreErrors) {
  const Tensor features = Tensor::from<float>({2, 1}, {0, 1});
  const auto message = [&](const std::vector<int64_t>& labels, int64_t classes, double c) {
    return error_of([&] { fit_logistic_regression(features, labels, classes, {.c = c}); });
  };
  EXPECT_TRUE(contains(message({0, 1}, 2, 0), "C above 0"));
  EXPECT_TRUE(contains(message({0, 0}, 1, 1), "at least two classes"));
  EXPECT_TRUE(contains(message({0}, 2, 1), "a label for each of 2 rows"));
  EXPECT_TRUE(contains(message({0, 2}, 2, 1), "labels below 2"));
  EXPECT_TRUE(contains(message({0, -1}, 2, 1), "labels below 2"));
  EXPECT_TRUE(contains(message({0, 1}, 2, NAN), "C above 0"));
  EXPECT_TRUE(contains(error_of([&] {
                         fit_logistic_regression(features.select(1, 0), {0, 1}, 2);
                       }),
                       "features [n, D]"));
  EXPECT_TRUE(contains(error_of([&] { fit_logistic_regression(Tensor::zeros({0, 1}), {}, 2); }), "a label for each"));
  const Tensor infinite = Tensor::from<float>({2, 1}, {0, INFINITY});
  EXPECT_TRUE(contains(error_of([&] { fit_logistic_regression(infinite, {0, 1}, 2); }), "finite features"));
}

TEST(StrengthSearch, FoldsAreScikitLearns) {
  const testing::Golden expected = golden();
  for (const auto& test : nlohmann::json::parse(expected.config)) {
    const std::string name = test["name"];
    EXPECT_EQ(stratified_folds(labels_of(expected[name + ".labels"]), test["folds"]),
              labels_of(expected[name + ".folds"]))
        << name;
  }
}

// A held-out loss changes by at most the largest change of a logit difference, twice that of a logit.
TEST(StrengthSearch, HeldOutLossesAreScikitLearns) {
  const testing::Golden expected = golden();
  for (const auto& test : nlohmann::json::parse(expected.config)) {
    const std::string name = test["name"];
    const Tensor& features = expected[name + ".features"];
    StrengthSearchOptions options{.candidates = {}, .folds = test["folds"], .regression = {.tolerance = 1e-9}};
    double curvature = 1;
    for (const auto& fit : test["fits"]) {
      options.candidates.push_back(fit["c"]);
      curvature = std::min(curvature, fit["curvature"].get<double>());
    }
    const StrengthSearch got =
        search_strength(features, labels_of(expected[name + ".labels"]), test["classes"], options);
    const Tensor& losses = expected[name + ".losses"];
    size_t best = 0;
    for (size_t i = 0; i < got.c.size(); ++i) {
      const double parameters = static_cast<double>(test["classes"].get<int64_t>() * (features.size(1) + 1));
      const double distance = std::sqrt(parameters) * 1e-9 / (curvature / 2);  // fewer samples have less curvature
      EXPECT_NEAR(got.held_out[i].loss, losses.data<double>()[i],
                  2 * distance * (static_cast<double>(features.size(1)) * largest(features) + 1))
          << name << ", C " << got.c[i];
      if (losses.data<double>()[i] < losses.data<double>()[best]) best = i;
    }
    EXPECT_EQ(got.best, got.c[best]) << name;
    EXPECT_EQ(got.folds, 3);
  }
}

TEST(StrengthSearch, TheSmallestClassLimitsTheFolds) {
  const Tensor features = Tensor::from<float>({7, 1}, {0, 1, 2, 3, 4, 10, 11});
  const StrengthSearch two = search_strength(features, {0, 0, 0, 0, 0, 1, 1}, 2);
  EXPECT_EQ(two.folds, 2);
  const StrengthSearch none = search_strength(features, {0, 0, 0, 0, 0, 0, 1}, 2);
  EXPECT_EQ(none.folds, 0);
  EXPECT_EQ(none.best, 1);
}

TEST(StrengthSearch, CandidatesHaveEqualRatios) {
  const std::vector<double> got = log_spaced(0.01, 100, 3), want{0.01, 1, 100};
  ASSERT_EQ(got.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(got[i], want[i]);
}

TEST(FitOf, CountsTheFirstOfEqualLogits) {
  const Tensor z = Tensor::from<double>({4, 3}, {1, 1, 0, 0, 2, 2, 5, 0, 0, 1000, 0, -1000});
  const Fit fit = fit_of(z, {0, 2, 0, 0});
  EXPECT_EQ(fit.top1, 0.75) << "of the second row the first of two equal ones is another class";
  const double e = std::exp(1.0),
               losses[] = {std::log(2 * e + 1) - 1, std::log(2 + std::exp(-2.0)), std::log(1 + 2 * std::exp(-5.0)), 0};
  EXPECT_NEAR(fit.loss, (losses[0] + losses[1] + losses[2] + losses[3]) / 4, 1e-14);
}

// Each fold has as many samples of a class as every other one, but for one.
TEST(StrengthSearch, FoldsHaveEqualPartsOfEachClass) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 101; ++i) labels.push_back(i * i % 7 % 4);
  for (const int64_t folds : {2, 3, 5}) {
    const std::vector<int64_t> got = stratified_folds(labels, folds);
    ASSERT_EQ(got.size(), labels.size());
    for (int64_t label = 0; label < 4; ++label) {
      std::vector<int64_t> counts(static_cast<size_t>(folds));
      for (size_t i = 0; i < got.size(); ++i) counts[static_cast<size_t>(got[i])] += labels[i] == label;
      const auto [low, high] = std::ranges::minmax(counts);
      EXPECT_LE(high - low, 1) << label;
    }
  }
}

TEST(StrengthSearch, ReportsEachFitAndRefusesNoCandidates) {
  const Tensor features = Tensor::randn({20, 3}, 1);
  std::vector<int64_t> labels(20);
  for (size_t i = 0; i < 20; ++i) labels[i] = static_cast<int64_t>(i % 2);
  std::vector<std::pair<int64_t, int64_t>> calls;
  const StrengthSearch got = search_strength(features, labels, 2, {.candidates = {0.1, 1, 10}, .folds = 4},
                                             [&](int64_t done, int64_t total) { calls.emplace_back(done, total); });
  ASSERT_EQ(calls.size(), 12u);
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(calls[i], (std::pair<int64_t, int64_t>(i + 1, 12)));
  EXPECT_EQ(got.folds, 4);
  EXPECT_EQ(got.samples, 20);
  EXPECT_EQ(got.best, got.c[got.best_index]);
  for (const Fit& fit : got.held_out) EXPECT_GE(fit.loss, got.held_out_fit().loss);
  EXPECT_THROW(search_strength(features, labels, 2, {.candidates = {}}), Error);
}

// The strongest penalty is chosen of those with equal losses.
TEST(StrengthSearch, OfEqualLossesTheLowestCIsBest) {
  const Tensor features = Tensor::zeros({12, 2});
  std::vector<int64_t> labels(12);
  for (size_t i = 0; i < 12; ++i) labels[i] = static_cast<int64_t>(i % 2);
  const StrengthSearch got = search_strength(features, labels, 2, {.candidates = {0.5, 1, 10}, .folds = 3});
  EXPECT_EQ(got.best, 0.5);
  EXPECT_EQ(got.best_index, 0u);
}

TEST(StrengthSearch, CandidatesBeginAndEndAtTheGivenValues) {
  for (const int count : {2, 3, 10}) {
    const std::vector<double> got = log_spaced(1e-4, 1e4, count);
    ASSERT_EQ(static_cast<int>(got.size()), count);
    EXPECT_DOUBLE_EQ(got.front(), 1e-4);
    EXPECT_NEAR(got.back(), 1e4, 1e-9);
    for (size_t i = 2; i < got.size(); ++i) EXPECT_NEAR(got[i] / got[i - 1], got[1] / got[0], 1e-9 * got[1] / got[0]);
  }
  EXPECT_EQ(log_spaced(3, 5, 1), std::vector<double>{3});
  EXPECT_TRUE(log_spaced(3, 5, 0).empty());
  EXPECT_EQ(StrengthSearchOptions{}.candidates.size(), 10u);
}

TEST(LogisticRegression, OptionsHaveTheDefaultsOfTheHeader) {
  EXPECT_EQ(LogisticRegressionOptions{}.c, 1);
  EXPECT_EQ(LogisticRegressionOptions{}.tolerance, 1e-4);
  EXPECT_EQ(LogisticRegressionOptions{}.max_iterations, 1000);
}

// The objective's gradient at the solution by its definition: its largest element is what the result tells.  Widths of
// 1 to 19 values have remainders of all sizes after the groups of eight.
TEST(LogisticRegression, ItsLargestGradientIsThatOfTheObjective) {
  for (const int64_t classes : {2, 3}) {
    for (const int64_t width : {1, 2, 7, 8, 9, 15, 16, 19}) {
      const int64_t n = 21;
      const Tensor x = Tensor::randn({n, width}, static_cast<uint64_t>(width));
      std::vector<int64_t> labels;
      for (int64_t i = 0; i < n; ++i) labels.push_back(i * i % 7 % classes);
      const double c = 0.3, penalty = (classes == 2 ? 2 : 1) / (c * static_cast<double>(n));
      const LinearClassifier got = fit_logistic_regression(x, labels, classes, {.c = c, .max_iterations = 3});
      const auto w = [&](int64_t k, int64_t d) { return got.weight.data<double>()[k * width + d]; };
      std::vector<double> gradient(static_cast<size_t>(classes * (width + 1)));
      for (int64_t i = 0; i < n; ++i) {
        std::vector<double> z(static_cast<size_t>(classes));
        double sum = 0;
        for (int64_t k = 0; k < classes; ++k) {
          double& logit = z[static_cast<size_t>(k)];
          logit = got.bias.data<double>()[k];
          for (int64_t d = 0; d < width; ++d) logit += w(k, d) * x.data<float>()[i * width + d];
          EXPECT_NEAR(logits(got, x).data<double>()[i * classes + k], logit, 1e-12);
          sum += std::exp(logit);
        }
        for (int64_t k = 0; k < classes; ++k) {
          const double residual = std::exp(z[static_cast<size_t>(k)]) / sum - (labels[static_cast<size_t>(i)] == k);
          for (int64_t d = 0; d <= width; ++d) {
            const double value = d < width ? x.data<float>()[i * width + d] : 1;
            gradient[static_cast<size_t>(k * (width + 1) + d)] += residual * value / static_cast<double>(n);
          }
        }
      }
      double want = 0;
      for (int64_t k = 0; k < classes; ++k) {
        for (int64_t d = 0; d <= width; ++d) {
          const double of_penalty = d < width ? penalty * w(k, d) : 0;
          want = std::max(want, std::abs(gradient[static_cast<size_t>(k * (width + 1) + d)] + of_penalty));
        }
      }
      EXPECT_NEAR(got.largest_gradient, want, 1e-12) << classes << " classes, " << width << " values";
      EXPECT_EQ(got.converged, want <= 1e-4);
    }
  }
}

TEST(LogisticRegression, ErrorsNameTheValue) {
  const Tensor x = Tensor::from<float>({3, 1}, {0, 1, 2});
  const auto message = [&](const std::vector<int64_t>& labels, int64_t classes, double c) {
    return error_of([&] { fit_logistic_regression(x, labels, classes, {.c = c}); });
  };
  EXPECT_ERROR(message({0, 1, 1}, 2, -0.5), "logistic regression", "-0.5");
  EXPECT_ERROR(message({0, 0, 0}, 1, 1), "logistic regression", "1");
  EXPECT_ERROR(message({0, 1}, 2, 1), "logistic regression", "2");
  EXPECT_ERROR(message({0, 1, 3}, 3, 1), "logistic regression", "3");
  EXPECT_ERROR(message({-2, 1, 0}, 3, 1), "logistic regression", "-2");
  EXPECT_ERROR(error_of([] {
                 fit_logistic_regression(Tensor::full({2, 1}, -INFINITY), {0, 1}, 2);
               }),
               "logistic regression", "NaN or infinity");
}

}  // namespace
}  // namespace vitrail::analysis
