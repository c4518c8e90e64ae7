// SPDX-License-Identifier: Apache-2.0
#pragma once
// Metrics of a classifier on labelled images: accuracy, precision, recall and F1 by class, confusion and calibration.
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/data/metrics/metrics.h"

namespace vitrail::data {

// The values are those of scikit-learn's precision_recall_fscore_support with zero_division=0: a ratio without a
// denominator is 0.
struct ClassMetrics {
  double precision = 0, recall = 0, f1 = 0;
  int64_t support = 0;  // images with this label
};

// The metrics of a class.  support: images of the class; predicted: images that are predicted as it; correct: both.
ClassMetrics class_metrics(int64_t correct, int64_t support, int64_t predicted);

class ClassificationReport {
 public:
  explicit ClassificationReport(int64_t classes);

  // logits [classes], label in [0, classes).  Returns the predicted class and its probability.  Throws Error as
  // Accuracy::add; the image is then not counted.
  Prediction add(std::span<const float> logits, int64_t label, const std::string& where);

  int64_t images() const { return accuracy_.images(); }
  double top1() const { return accuracy_.top1(); }
  double top5() const { return accuracy_.top5(); }

  int64_t num_classes() const { return static_cast<int64_t>(support_.size()); }  // the model's
  ClassMetrics of_class(int64_t label) const;
  std::vector<int64_t> classes() const;   // those that are a label or a prediction, in index order
  ClassMetrics macro_average() const;     // over classes()
  ClassMetrics weighted_average() const;  // by support

  // Number of images by label and prediction; pairs without images are left out.
  const std::map<std::pair<int64_t, int64_t>, int64_t>& confusion() const { return confusion_; }

  // Expected calibration error of the predicted class's probability in 15 bins of equal width (Guo et al. 2017, eq. 3).
  double calibration_error() const;

 private:
  static constexpr size_t kBins = 15;
  struct Bin {
    double probability = 0;  // sum
    int64_t images = 0, correct = 0;
  };

  Accuracy accuracy_;
  std::vector<int64_t> support_, predicted_, correct_;  // by class
  std::map<std::pair<int64_t, int64_t>, int64_t> confusion_;
  std::array<Bin, kBins> bins_{};
};

}  // namespace vitrail::data
