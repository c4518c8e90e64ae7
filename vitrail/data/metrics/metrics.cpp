// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/metrics/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"

namespace vitrail::data {
namespace {

void require_rankable(std::span<const float> logits, const std::string& where) {
  if (logits.empty()) throw Error(where, "logits of at least one class", "none");
  bool any_finite = false;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == INFINITY)
      throw Error(where, "finite logits", str(logits[i], " for class ", i));
    any_finite |= std::isfinite(logits[i]);
  }
  if (!any_finite) throw Error(where, "finite logits", "-inf for every class");
}

}  // namespace

std::vector<float> softmax(std::span<const float> logits, const std::string& where) {
  require_rankable(logits, where);
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  std::vector<float> probabilities(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    probabilities[i] = static_cast<float>(std::exp(logits[i] - largest) / sum);
  }
  return probabilities;
}

std::vector<Prediction> top_k(std::span<const float> logits, int64_t k, const std::string& where) {
  if (k < 1) throw Error(where, "k of at least 1 for the top-k classes", str(k));
  const std::vector<float> probabilities = softmax(logits, where);
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = std::min<int64_t>(k, static_cast<int64_t>(order.size()));
  // Sorted by logit: different logits may round to equal probabilities.
  std::partial_sort(order.begin(), order.begin() + count, order.end(),
                    [&](int64_t a, int64_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  std::vector<Prediction> best;
  for (int64_t i = 0; i < count; ++i) best.push_back({order[i], probabilities[order[i]]});
  return best;
}

void Accuracy::add(std::span<const float> logits, int64_t label, const std::string& where) {
  require_rankable(logits, where);
  const auto classes = static_cast<int64_t>(logits.size());
  if (label < 0 || label >= classes) throw Error(where, str("a class index below ", classes), str(label));
  int64_t rank = 0;  // number of classes before the label
  for (int64_t i = 0; i < classes; ++i) {
    rank += logits[i] > logits[label] || (logits[i] == logits[label] && i < label);
  }
  ++images_;
  top1_ += rank < 1;
  top5_ += rank < 5 && logits[label] > -std::numeric_limits<float>::infinity();
}

Interval wilson_interval(double fraction, int64_t images) {
  if (images < 1) return {};
  constexpr double kZ = 1.959963984540054;  // the 97.5 % quantile of the normal distribution
  const auto n = static_cast<double>(images);
  const double center = fraction + kZ * kZ / (2 * n);
  const double margin = kZ * std::sqrt(fraction * (1 - fraction) / n + kZ * kZ / (4 * n * n));
  const double scale = 1 + kZ * kZ / n;
  return {std::max(0.0, (center - margin) / scale), std::min(1.0, (center + margin) / scale)};
}

std::string accuracy_text(double fraction, int64_t images) {
  const Interval interval = wilson_interval(fraction, images);
  char text[128];
  std::snprintf(text, sizeof text, "%.2f %% of %s (95 %% interval %.1f to %.1f %%)", 100 * fraction,
                counted(images, "image").c_str(), 100 * interval.low, 100 * interval.high);
  return text;
}

}  // namespace vitrail::data
