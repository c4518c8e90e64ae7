// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/detection_confusion.h"

#include <algorithm>

namespace vitrail::analysis {
namespace {

constexpr double kMinOverlap = 0.5;

struct OverlapPair {
  size_t truth = 0, detection = 0;
  bool is_same_class = false;
  double overlap = 0;
};

}  // namespace

DetectionConfusion::DetectionConfusion(int64_t categories)
    : counts_(static_cast<size_t>(categories) + 1, std::vector<int64_t>(static_cast<size_t>(categories) + 1)) {}

DetectionConfusion::Errors DetectionConfusion::add(std::span<const CocoTruth> truths,
                                                   std::span<const CocoDetection> detections,
                                                   const CocoOverlap& overlap) {
  std::vector<OverlapPair> pairs;
  std::vector<bool> found(truths.size()), used(detections.size());
  for (size_t d = 0; d < detections.size(); ++d) {
    bool in_ignored = false;
    const size_t first = pairs.size();
    for (size_t t = 0; t < truths.size(); ++t) {
      const double both = overlap(d, t);
      if (both < kMinOverlap) continue;
      if (truths[t].crowd || truths[t].ignored) {
        in_ignored = true;
      } else {
        pairs.push_back({t, d, truths[t].category == detections[d].category, both});
      }
    }
    used[d] = in_ignored && pairs.size() == first;
  }
  std::ranges::stable_sort(pairs, [](const OverlapPair& a, const OverlapPair& b) {
    return a.is_same_class != b.is_same_class ? a.is_same_class : a.overlap > b.overlap;
  });
  Errors errors;
  const size_t none = counts_.size() - 1;
  for (const OverlapPair& pair : pairs) {
    if (found[pair.truth] || used[pair.detection]) continue;
    found[pair.truth] = used[pair.detection] = true;
    ++(pair.is_same_class ? errors.right : errors.confused);
    ++counts_.at(static_cast<size_t>(truths[pair.truth].category))
          .at(static_cast<size_t>(detections[pair.detection].category));
  }
  for (size_t t = 0; t < truths.size(); ++t) {
    if (found[t] || truths[t].crowd || truths[t].ignored) continue;
    ++errors.missed;
    ++counts_.at(static_cast<size_t>(truths[t].category))[none];
  }
  for (size_t d = 0; d < detections.size(); ++d) {
    if (used[d]) continue;
    ++errors.wrong;
    ++counts_[none].at(static_cast<size_t>(detections[d].category));
  }
  return errors;
}

}  // namespace vitrail::analysis
