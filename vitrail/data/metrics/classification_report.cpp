// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/metrics/classification_report.h"

#include <algorithm>
#include <cmath>

namespace vitrail::data {
namespace {

double ratio(double numerator, double denominator) { return denominator == 0 ? 0 : numerator / denominator; }

}  // namespace

ClassMetrics class_metrics(int64_t correct, int64_t support, int64_t predicted) {
  const auto hits = static_cast<double>(correct);
  return {.precision = ratio(hits, static_cast<double>(predicted)),
          .recall = ratio(hits, static_cast<double>(support)),
          .f1 = ratio(2 * hits, static_cast<double>(predicted + support)),
          .support = support};
}

ClassificationReport::ClassificationReport(int64_t classes)
    : support_(static_cast<size_t>(classes)),
      predicted_(static_cast<size_t>(classes)),
      correct_(static_cast<size_t>(classes)) {}

Prediction ClassificationReport::add(std::span<const float> logits, int64_t label, const std::string& where) {
  const Prediction prediction = top_k(logits, 1, where).front();
  accuracy_.add(logits, label, where);
  const bool correct = prediction.index == label;
  ++support_.at(static_cast<size_t>(label));
  ++predicted_.at(static_cast<size_t>(prediction.index));
  correct_.at(static_cast<size_t>(label)) += correct;
  ++confusion_[{label, prediction.index}];
  // Bins contain their upper end, as in the paper's I_m = ((m − 1) / M, m / M].
  const double position = std::ceil(static_cast<double>(prediction.probability) * kBins) - 1;
  Bin& bin = bins_[static_cast<size_t>(std::clamp(position, 0.0, kBins - 1.0))];
  bin.probability += prediction.probability;
  ++bin.images;
  bin.correct += correct;
  return prediction;
}

ClassMetrics ClassificationReport::of_class(int64_t label) const {
  const auto i = static_cast<size_t>(label);
  return class_metrics(correct_.at(i), support_[i], predicted_[i]);
}

std::vector<int64_t> ClassificationReport::classes() const {
  std::vector<int64_t> result;
  for (size_t i = 0; i < support_.size(); ++i) {
    if (support_[i] + predicted_[i] > 0) result.push_back(static_cast<int64_t>(i));
  }
  return result;
}

ClassMetrics ClassificationReport::macro_average() const {
  ClassMetrics sum;
  const std::vector<int64_t> present = classes();
  for (const int64_t label : present) {
    const ClassMetrics metrics = of_class(label);
    sum.precision += metrics.precision, sum.recall += metrics.recall, sum.f1 += metrics.f1;
  }
  const auto count = static_cast<double>(present.size());
  return {ratio(sum.precision, count), ratio(sum.recall, count), ratio(sum.f1, count), images()};
}

ClassMetrics ClassificationReport::weighted_average() const {
  ClassMetrics sum;
  for (const int64_t label : classes()) {
    const ClassMetrics metrics = of_class(label);
    const auto weight = static_cast<double>(metrics.support);
    sum.precision += weight * metrics.precision, sum.recall += weight * metrics.recall, sum.f1 += weight * metrics.f1;
  }
  const auto count = static_cast<double>(images());
  return {ratio(sum.precision, count), ratio(sum.recall, count), ratio(sum.f1, count), images()};
}

double ClassificationReport::calibration_error() const {
  double error = 0;
  for (const Bin& bin : bins_) error += std::abs(static_cast<double>(bin.correct) - bin.probability);
  return ratio(error, static_cast<double>(images()));
}

}  // namespace vitrail::data
