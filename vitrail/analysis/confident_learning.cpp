// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/confident_learning.h"

#include <algorithm>
#include <limits>

#include "vitrail/base/error.h"

namespace vitrail::analysis {
namespace {

constexpr double kThresholdRounding = 1e-6;  // a probability that equals the threshold but for rounding reaches it

// For each class, the mean probability of it over the samples that have it as their label.  No sample belongs to a
// class without any.
std::vector<double> confidence_thresholds(const double* rows, const std::vector<int64_t>& labels, size_t classes) {
  std::vector<double> sums(classes), counts(classes);
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto label = static_cast<size_t>(labels[i]);
    sums[label] += rows[i * classes + label];
    ++counts[label];
  }
  for (size_t c = 0; c < classes; ++c)
    sums[c] = counts[c] > 0 ? sums[c] / counts[c] : std::numeric_limits<double>::infinity();
  return sums;
}

// The most probable of the classes whose threshold the row reaches; −1 for none.
int64_t confident_class(const double* row, const std::vector<double>& thresholds) {
  int64_t best = -1;
  for (size_t c = 0; c < thresholds.size(); ++c) {
    if (row[c] >= thresholds[c] - kThresholdRounding && (best < 0 || row[c] > row[best]))
      best = static_cast<int64_t>(c);
  }
  return best;
}

}  // namespace

LabelQuality label_quality(const Tensor& probabilities, const std::vector<int64_t>& labels) {
  const Tensor values = probabilities.to(DType::f64).contiguous();
  if (values.rank() != 2 || values.size(0) != std::ssize(labels))
    throw Error("label quality", str("probabilities [", labels.size(), ", classes]"), values.shape().to_string());
  const auto classes = static_cast<size_t>(values.size(1));
  for (const int64_t label : labels) {
    if (label < 0 || label >= static_cast<int64_t>(classes))
      throw Error("label quality", str("labels from 0 to ", classes - 1), str(label));
  }
  const double* const rows = values.data<double>();
  const std::vector<double> thresholds = confidence_thresholds(rows, labels, classes);
  LabelQuality quality{.self_confidence = {},
                       .predicted = {},
                       .confident_joint = {classes, std::vector<int64_t>(classes)},
                       .errors = {}};
  for (size_t i = 0; i < labels.size(); ++i) {
    const double* const row = rows + i * classes;
    const int64_t confident = confident_class(row, thresholds);
    quality.self_confidence.push_back(row[labels[i]]);
    quality.predicted.push_back(std::max_element(row, row + classes) - row);
    if (confident < 0) continue;
    ++quality.confident_joint[static_cast<size_t>(labels[i])][static_cast<size_t>(confident)];
    if (confident != labels[i] && quality.predicted.back() != labels[i])
      quality.errors.push_back(static_cast<int64_t>(i));
  }
  std::ranges::stable_sort(quality.errors, {},
                           [&](int64_t i) { return quality.self_confidence[static_cast<size_t>(i)]; });
  return quality;
}

}  // namespace vitrail::analysis
