// SPDX-License-Identifier: Apache-2.0
#pragma once
// The choice of a logistic regression's penalty by cross-validation, as scikit-learn's LogisticRegressionCV does it.
#include <cstdint>
#include <functional>
#include <vector>

#include "vitrail/analysis/logistic_regression.h"

namespace vitrail::analysis {

// For each label, the fold in [0, folds) that its sample is held out in.  Every fold has the same share of each class,
// within one sample, and consecutive samples of a class are held out together, because neighbouring files are often
// similar.  The folds are those of scikit-learn's StratifiedKFold without shuffling.
std::vector<int64_t> stratified_folds(const std::vector<int64_t>& labels, int64_t folds);

// `count` values from `first` to `last` with equal ratios.
std::vector<double> log_spaced(double first, double last, int count);

struct StrengthSearchOptions {
  std::vector<double> candidates = log_spaced(1e-4, 1e4, 10);  // values of C, ascending
  int64_t folds = 5;                                           // fewer, if a class has fewer samples
  LogisticRegressionOptions regression{};                      // settings of each fit; `c` is not used
};

struct StrengthSearch {
  double best = 1;      // the candidate with the lowest held-out loss, of equal ones the lowest
  int64_t folds = 0;    // used; 0: a class has a single sample, and `best` is not a result of a search
  int64_t samples = 0;  // number of samples in all folds
  size_t best_index = 0;
  std::vector<double> c{};      // the candidates
  std::vector<Fit> held_out{};  // for each candidate, the mean over the folds of how well held-out samples are fitted

  const Fit& held_out_fit() const { return held_out.at(best_index); }  // fit of the best candidate, unless `folds` is 0
};

// Arguments as fit_logistic_regression.  `progress(done, total)`, if set, is called after each fit, and may throw.
StrengthSearch search_strength(const Tensor& features, const std::vector<int64_t>& labels, int64_t classes,
                               const StrengthSearchOptions& options = {},
                               const std::function<void(int64_t, int64_t)>& progress = {});

// The logits [n, classes] (f64) of each sample by the regression of the other folds, with the penalty search.best.
// Throws Error if `search` has no folds.
Tensor held_out_logits(const StrengthSearch& search, const Tensor& features, const std::vector<int64_t>& labels,
                       int64_t classes, const StrengthSearchOptions& options = {});

}  // namespace vitrail::analysis
