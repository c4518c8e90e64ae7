// SPDX-License-Identifier: Apache-2.0
#pragma once
// K-fold cross-validation of a recipe, and a final model that is trained on all images.
#include <cstdint>
#include <span>
#include <vector>

#include "vitrail/data/metrics/metrics.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {

// The mean of some values, their standard deviation (divided by n − 1), and Student's 95 % interval of the mean,
// mean ± t(0.975, n − 1) · deviation / √n, cut to [0, 1].  2 to 20 values.
struct MeanInterval {
  double mean = 0, deviation = 0;
  data::Interval interval{};
};
MeanInterval mean_interval(std::span<const double> values);

struct CrossValidationResult {
  Metric metric;              // the objective's first
  std::vector<double> folds;  // its value on each fold
  MeanInterval mean;
  int64_t images = 0;    // over all folds: each training image once
  TrainingResult final;  // the model of all images; stopped: callbacks.stop ended a fold or this run early
};

constexpr int64_t kMaxFolds = 20;

// Trains `folds` models, each without one of `folds` parts of the training images (data::fold_split), and measures the
// weights of the last epoch on that part: no held-out image chooses weights or ends a run early, so that the mean tells
// what to expect of the final model.  It is trained on all images in the same way, and its last weights are kept.
//
// Files, besides those of train() in the folder for the final model: folds/1/ to folds/K/, each a run;
// cross_validation.json.  options.resume continues with the first run that is not finished.
//
// Throws Error as train(), for a number of folds outside 2 to kMaxFolds, for a recipe with validation images of its
// own, a hold-out, a fold, or another objective than "classify", and for a resumption with other images than the folds
// had: some would be held out twice or never.
CrossValidationResult cross_validate(const Recipe& recipe, int64_t folds, const TrainerOptions& options,
                                     const TrainerCallbacks& callbacks = {});

}  // namespace vitrail::train
