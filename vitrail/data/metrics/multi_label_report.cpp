// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/metrics/multi_label_report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "vitrail/base/error.h"

namespace vitrail::data {

float sigmoid(float logit) { return static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logit)))); }

std::optional<double> average_precision(std::span<const float> scores, const std::vector<bool>& relevant) {
  const auto positives = std::count(relevant.begin(), relevant.end(), true);
  if (positives == 0) return std::nullopt;
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  double sum = 0;
  int64_t found = 0;  // true positives
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    int64_t added = 0;
    for (; end < order.size() && scores[order[end]] == scores[order[begin]]; ++end) added += relevant[order[end]];
    found += added;
    sum += static_cast<double>(added) * static_cast<double>(found) / static_cast<double>(end);
  }
  return sum / static_cast<double>(positives);
}

MultiLabelReport::MultiLabelReport(int64_t classes)
    : support_(static_cast<size_t>(classes)),
      predicted_(static_cast<size_t>(classes)),
      correct_(static_cast<size_t>(classes)) {}

void MultiLabelReport::add(std::span<const float> logits, const std::vector<int64_t>& labels,
                           const std::string& where) {
  if (logits.size() != support_.size()) throw Error(where, str(support_.size(), " logits"), str(logits.size()));
  for (size_t c = 0; c < logits.size(); ++c) {
    if (std::isnan(logits[c])) throw Error(where, "finite logits", str("nan for class ", c));
  }
  std::vector<bool> truth(support_.size());
  for (const int64_t label : labels) {
    if (label < 0 || label >= class_count()) throw Error(where, str("a class index below ", class_count()), str(label));
    truth[static_cast<size_t>(label)] = true;
  }
  bool all_right = true;
  for (size_t c = 0; c < logits.size(); ++c) {
    const bool predicted = logits[c] > 0;  // sigmoid above 0.5
    support_[c] += truth[c];
    predicted_[c] += predicted;
    correct_[c] += truth[c] && predicted;
    all_right = all_right && truth[c] == predicted;
  }
  scores_.insert(scores_.end(), logits.begin(), logits.end());
  relevant_.insert(relevant_.end(), truth.begin(), truth.end());
  ++images_;
  exact_ += all_right;
}

double MultiLabelReport::exact() const {
  return images_ == 0 ? 0 : static_cast<double>(exact_) / static_cast<double>(images_);
}

std::optional<double> MultiLabelReport::average_precision_of(int64_t label) const {
  std::vector<float> scores;
  std::vector<bool> relevant;
  for (auto i = static_cast<size_t>(label); i < scores_.size(); i += support_.size()) {
    scores.push_back(scores_[i]);
    relevant.push_back(relevant_[i]);
  }
  return average_precision(scores, relevant);
}

std::optional<double> MultiLabelReport::macro_average_precision() const {
  double sum = 0;
  int64_t count = 0;
  for (int64_t c = 0; c < class_count(); ++c) {
    const std::optional<double> value = average_precision_of(c);
    if (!value) continue;
    sum += *value;
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

std::optional<double> MultiLabelReport::micro_average_precision() const {
  return average_precision(scores_, relevant_);
}

ClassMetrics MultiLabelReport::of_class(int64_t label) const {
  const auto i = static_cast<size_t>(label);
  return class_metrics(correct_.at(i), support_[i], predicted_[i]);
}

ClassMetrics MultiLabelReport::macro_average() const {
  ClassMetrics sum;
  for (int64_t c = 0; c < class_count(); ++c) {
    const ClassMetrics metrics = of_class(c);
    sum.precision += metrics.precision, sum.recall += metrics.recall, sum.f1 += metrics.f1;
    sum.support += metrics.support;
  }
  const auto count = static_cast<double>(std::max<int64_t>(class_count(), 1));
  return {sum.precision / count, sum.recall / count, sum.f1 / count, sum.support};
}

ClassMetrics MultiLabelReport::micro_average() const {
  const auto total = [](const std::vector<int64_t>& counts) {
    return std::accumulate(counts.begin(), counts.end(), int64_t{0});
  };
  return class_metrics(total(correct_), total(support_), total(predicted_));
}

}  // namespace vitrail::data
