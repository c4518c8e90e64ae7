// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/strength_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/messages.h"

namespace vitrail::analysis {
namespace {

using Labels = std::vector<int64_t>;

// 13 samples of three classes; the smallest class has three.
struct Data {
  Tensor features = Tensor::randn({13, 4}, 5);
  Labels labels{0, 1, 2, 1, 0, 1, 0, 2, 0, 1, 2, 0, 0};
};

// What scikit-learn's StratifiedKFold(3) gives: consecutive samples of a class are held out together.
TEST(StratifiedFolds, HoldOutConsecutiveSamplesOfAClass) {
  EXPECT_EQ(stratified_folds({0, 0, 0, 0, 0, 0}, 3), (Labels{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(stratified_folds({0, 1, 0, 1, 0, 1}, 3), (Labels{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(stratified_folds({0, 0, 0, 0, 1, 1, 1, 1, 1}, 2), (Labels{0, 0, 1, 1, 0, 0, 0, 1, 1}));
  // Seven samples of the first class that appears, whatever its number; the next begins at the second fold.
  EXPECT_EQ(stratified_folds({5, 5, 5, 5, 5, 5, 5, 2, 2, 2, 2}, 3), (Labels{0, 0, 0, 1, 1, 2, 2, 0, 1, 1, 2}));
  EXPECT_EQ(stratified_folds({}, 3), Labels{});
}

// Each fold by itself: a fit without its samples, which begins where the stronger penalty's ended, and their fit by it.
TEST(StrengthSearch, HeldOutFitsAreMeansOverTheFolds) {
  const Data data;
  const std::vector<double> candidates{0.01, 0.5, 30};
  // Two iterations do not reach the minimum, so that the start decides the result.
  for (const LogisticRegressionOptions& regression :
       {LogisticRegressionOptions{.tolerance = 1e-7}, LogisticRegressionOptions{.max_iterations = 2},
        LogisticRegressionOptions{.tolerance = 0.05}}) {
    const StrengthSearch got = search_strength(data.features, data.labels, 3,
                                               {.candidates = candidates, .folds = 3, .regression = regression});
    ASSERT_EQ(got.folds, 3);
    ASSERT_EQ(got.held_out.size(), 3U);
    EXPECT_EQ(got.c, candidates);
    EXPECT_EQ(got.samples, 13);
    const Labels folds = stratified_folds(data.labels, 3);
    std::vector<Fit> want(3);
    for (int64_t fold = 0; fold < 3; ++fold) {
      std::vector<float> train, test;
      Labels train_labels, test_labels;
      for (size_t i = 0; i < 13; ++i) {
        const float* row = data.features.data<float>() + 4 * i;
        (folds[i] == fold ? test : train).insert((folds[i] == fold ? test : train).end(), row, row + 4);
        (folds[i] == fold ? test_labels : train_labels).push_back(data.labels[i]);
      }
      LinearClassifier classifier;
      for (size_t c = 0; c < 3; ++c) {
        LogisticRegressionOptions options = regression;
        options.c = candidates[c];
        const auto rows = static_cast<int64_t>(train_labels.size());
        classifier = fit_logistic_regression(Tensor::from<float>({rows, 4}, train), train_labels, 3, options,
                                             c > 0 ? &classifier : nullptr);
        const Tensor held_out = Tensor::from<float>({13 - rows, 4}, test);
        const Fit fit = fit_of(logits(classifier, held_out), test_labels);
        want[c].loss += fit.loss / 3;
        want[c].top1 += fit.top1 / 3;
      }
    }
    size_t best = 0;
    for (size_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(got.held_out[c].loss, want[c].loss, 1e-9) << c;
      EXPECT_NEAR(got.held_out[c].top1, want[c].top1, 1e-12) << c;
      if (want[c].loss < want[best].loss) best = c;
    }
    EXPECT_EQ(got.best_index, best);
    EXPECT_EQ(got.best, candidates[best]);
    EXPECT_EQ(got.held_out_fit().loss, got.held_out[best].loss);
  }
}

// The rows of a fold are logits of the regression of all other samples.
TEST(StrengthSearch, HeldOutLogitsAreOfTheOtherFolds) {
  const Data data;
  const StrengthSearchOptions options{.candidates = {0.5}, .folds = 3, .regression = {.tolerance = 1e-7}};
  const StrengthSearch search = search_strength(data.features, data.labels, 3, options);
  const Tensor got = held_out_logits(search, data.features, data.labels, 3, options);
  const Labels folds = stratified_folds(data.labels, 3);
  for (size_t i = 0; i < 13; ++i) {
    std::vector<float> others;
    Labels labels;
    for (size_t j = 0; j < 13; ++j) {
      if (folds[j] == folds[i]) continue;
      others.insert(others.end(), data.features.data<float>() + 4 * j, data.features.data<float>() + 4 * (j + 1));
      labels.push_back(data.labels[j]);
    }
    const Tensor rows = Tensor::from<float>({std::ssize(labels), 4}, others);
    const LinearClassifier classifier = fit_logistic_regression(rows, labels, 3, {.c = 0.5, .tolerance = 1e-7});
    const Tensor want = logits(classifier, data.features.narrow(0, static_cast<int64_t>(i), 1));
    for (int64_t c = 0; c < 3; ++c)
      EXPECT_NEAR(got.data<double>()[3 * static_cast<int64_t>(i) + c], want.data<double>()[c], 1e-9) << i;
  }
  EXPECT_ERROR(testing::error_of([&] { held_out_logits(StrengthSearch{}, data.features, data.labels, 3); }),
               "held-out logits", "a class with one");
}

TEST(StrengthSearch, FoldsAreAtMostTheWantedOnesAndTheSamplesOfAClass) {
  const Data data;
  for (const auto& [wanted, folds] :
       {std::pair(1, 0), std::pair(0, 0), std::pair(2, 2), std::pair(3, 3), std::pair(4, 3), std::pair(50, 3)}) {
    int64_t calls = 0;
    const StrengthSearch got = search_strength(data.features, data.labels, 3, {.candidates = {0.5, 3}, .folds = wanted},
                                               [&, folds = folds](int64_t done, int64_t total) {
                                                 EXPECT_EQ(done, ++calls);
                                                 EXPECT_EQ(total, 2 * folds);
                                               });
    EXPECT_EQ(got.folds, folds) << wanted;
    EXPECT_EQ(calls, 2 * folds);
    EXPECT_EQ(got.held_out.size(), folds == 0 ? 0U : 2U);
    EXPECT_EQ(got.samples, 13);
    if (folds == 0) {
      EXPECT_EQ(got.best, 1);
    }
  }
}

TEST(StrengthSearch, ItsOptionsAreTenValuesOfCAndFiveFolds) {
  const StrengthSearchOptions options;
  EXPECT_EQ(options.folds, 5);
  ASSERT_EQ(options.candidates.size(), 10U);
  EXPECT_DOUBLE_EQ(options.candidates.front(), 1e-4);
  EXPECT_NEAR(options.candidates.back(), 1e4, 1e-9);
  EXPECT_TRUE(std::ranges::is_sorted(options.candidates));
  EXPECT_EQ(options.regression.tolerance, 1e-4);
  EXPECT_EQ(options.regression.max_iterations, 1000);
  EXPECT_EQ(options.regression.c, 1);
  EXPECT_ERROR(testing::error_of([] {
                 search_strength(Tensor::zeros({2, 1}), {0, 1}, 2, {.candidates = {}});
               }),
               "strength search", "none");
}

TEST(StrengthSearch, StopsAtAnErrorOfItsProgress) {
  const Data data;
  int64_t calls = 0;
  EXPECT_THROW(search_strength(data.features, data.labels, 3, {.candidates = {0.5, 3}},
                               [&](int64_t, int64_t) {
                                 if (++calls == 2) throw Error("test", "to stop", "two");
                               }),
               Error);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace vitrail::analysis
