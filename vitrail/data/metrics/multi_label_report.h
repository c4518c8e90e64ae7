// SPDX-License-Identifier: Apache-2.0
#pragma once
// Metrics of a classifier of images with several labels: average precision, and precision, recall and F1 at 0.5.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vitrail/data/metrics/classification_report.h"

namespace vitrail::data {

// sigmoid(logit), computed in double.
float sigmoid(float logit);

// Average precision Σ_n (R_n − R_{n−1}) P_n over the distinct scores in descending order, as scikit-learn's
// average_precision_score.  relevant: whether each score's sample is positive.  None without a positive sample.
std::optional<double> average_precision(std::span<const float> scores, const std::vector<bool>& relevant);

// A label is predicted if its probability, the sigmoid of its logit, is above 0.5.
class MultiLabelReport {
 public:
  explicit MultiLabelReport(int64_t classes);

  // logits [classes]; labels: classes in ascending order.  Throws Error naming `where` for a NaN, for another number of
  // logits and for a label out of range; the image is then not counted.
  void add(std::span<const float> logits, const std::vector<int64_t>& labels, const std::string& where);

  int64_t images() const { return images_; }
  int64_t class_count() const { return static_cast<int64_t>(support_.size()); }
  double exact() const;  // fraction of the images whose labels are all right; scikit-learn's accuracy_score

  // The value of one class; none if it has no images.
  std::optional<double> average_precision_of(int64_t label) const;
  // The mean over the classes with images; and that of all decisions together (average="micro").  None without any.
  std::optional<double> macro_average_precision() const;
  std::optional<double> micro_average_precision() const;

  ClassMetrics of_class(int64_t label) const;
  // Averages of scikit-learn's precision_recall_fscore_support with zero_division=0.  macro: over all classes.
  ClassMetrics macro_average() const;
  ClassMetrics micro_average() const;

 private:
  int64_t images_ = 0, exact_ = 0;
  std::vector<int64_t> support_, predicted_, correct_;  // by class
  std::vector<float> scores_;                           // logits [images, classes]
  std::vector<bool> relevant_;                          // [images, classes]
};

}  // namespace vitrail::data
