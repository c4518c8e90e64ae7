// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/strength_search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "vitrail/base/error.h"

namespace vitrail::analysis {
namespace {

struct Samples {
  std::vector<int64_t> rows;  // their indices
  Tensor features;
  std::vector<int64_t> labels;
};

// The samples that are held out in `fold`, or all others.
Samples samples_of(const Tensor& features, const std::vector<int64_t>& labels, const std::vector<int64_t>& folds,
                   int64_t fold, bool held_out) {
  const int64_t width = features.size(1);
  std::vector<int64_t> rows;
  for (size_t i = 0; i < folds.size(); ++i) {
    if ((folds[i] == fold) == held_out) rows.push_back(static_cast<int64_t>(i));
  }
  Samples samples{rows, Tensor::empty({static_cast<int64_t>(rows.size()), width}, DType::f64), {}};
  for (size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(features.data<double>() + rows[i] * width, width,
                samples.features.data<double>() + static_cast<int64_t>(i) * width);
    samples.labels.push_back(labels[static_cast<size_t>(rows[i])]);
  }
  return samples;
}

// The largest number of folds that has samples of every class to fit and to hold out.
int64_t possible_folds(const std::vector<int64_t>& labels, int64_t wanted) {
  std::map<int64_t, int64_t> counts;
  for (const int64_t label : labels) ++counts[label];
  for (const auto& [label, count] : counts) wanted = std::min(wanted, count);
  return wanted < 2 ? 0 : wanted;
}

}  // namespace

std::vector<double> log_spaced(double first, double last, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(first * std::pow(last / first, i / std::max(1.0, count - 1.0)));
  return values;
}

std::vector<int64_t> stratified_folds(const std::vector<int64_t>& labels, int64_t folds) {
  // The samples, ordered by class, are numbered 0, 1, …; a fold has as many of a class as there are such numbers that
  // are the fold's, modulo `folds`.  Classes are in the order of their first samples.
  std::vector<int64_t> order;
  std::map<int64_t, int64_t> counts;
  for (const int64_t label : labels) {
    if (counts[label]++ == 0) order.push_back(label);
  }
  std::map<int64_t, std::vector<int64_t>> folds_of;  // for each class, the folds of its samples in their order
  int64_t number = 0;
  for (const int64_t label : order) {
    std::vector<int64_t>& assigned = folds_of[label];
    for (int64_t i = 0; i < counts[label]; ++i) assigned.push_back(number++ % folds);
    std::sort(assigned.begin(), assigned.end());
  }
  std::vector<int64_t> result;
  std::map<int64_t, size_t> next;
  for (const int64_t label : labels) result.push_back(folds_of[label][next[label]++]);
  return result;
}

StrengthSearch search_strength(const Tensor& features, const std::vector<int64_t>& labels, int64_t classes,
                               const StrengthSearchOptions& options,
                               const std::function<void(int64_t, int64_t)>& progress) {
  if (options.candidates.empty()) throw Error("strength search", "at least one value of C", "none");
  const Tensor values = features.to(DType::f64).contiguous();
  StrengthSearch search{.folds = possible_folds(labels, options.folds),
                        .samples = static_cast<int64_t>(labels.size()),
                        .c = options.candidates};
  if (search.folds == 0) return search;
  search.held_out.resize(search.c.size());
  const std::vector<int64_t> folds = stratified_folds(labels, search.folds);
  const auto total = search.folds * static_cast<int64_t>(search.c.size());
  int64_t done = 0;
  for (int64_t fold = 0; fold < search.folds; ++fold) {
    const Samples train = samples_of(values, labels, folds, fold, false);
    const Samples test = samples_of(values, labels, folds, fold, true);
    std::optional<LinearClassifier> previous;  // a weaker penalty starts at the solution of the stronger one
    for (size_t i = 0; i < search.c.size(); ++i) {
      LogisticRegressionOptions regression = options.regression;
      regression.c = search.c[i];
      previous =
          fit_logistic_regression(train.features, train.labels, classes, regression, previous ? &*previous : nullptr);
      const Fit fit = fit_of(logits(*previous, test.features), test.labels);
      search.held_out[i].loss += fit.loss / static_cast<double>(search.folds);
      search.held_out[i].top1 += fit.top1 / static_cast<double>(search.folds);
      if (progress) progress(++done, total);
    }
  }
  const auto best = std::min_element(search.held_out.begin(), search.held_out.end(),
                                     [](const Fit& a, const Fit& b) { return a.loss < b.loss; });
  search.best_index = static_cast<size_t>(best - search.held_out.begin());
  search.best = search.c[search.best_index];
  return search;
}

Tensor held_out_logits(const StrengthSearch& search, const Tensor& features, const std::vector<int64_t>& labels,
                       int64_t classes, const StrengthSearchOptions& options) {
  if (search.folds == 0) throw Error("held-out logits", "at least two samples of each class", "a class with one");
  const Tensor values = features.to(DType::f64).contiguous();
  const std::vector<int64_t> folds = stratified_folds(labels, search.folds);
  LogisticRegressionOptions regression = options.regression;
  regression.c = search.best;
  Tensor result = Tensor::empty({std::ssize(labels), classes}, DType::f64);
  for (int64_t fold = 0; fold < search.folds; ++fold) {
    const Samples train = samples_of(values, labels, folds, fold, false);
    const Samples test = samples_of(values, labels, folds, fold, true);
    const Tensor of_fold =
        logits(fit_logistic_regression(train.features, train.labels, classes, regression), test.features);
    for (size_t i = 0; i < test.rows.size(); ++i)
      result.select(0, test.rows[i]).copy_(of_fold.select(0, static_cast<int64_t>(i)));
  }
  return result;
}

}  // namespace vitrail::analysis
