// SPDX-License-Identifier: Apache-2.0
#pragma once
// How well scores tell positives from negatives, over all thresholds.
#include <cstdint>
#include <span>
#include <vector>

namespace vitrail::analysis {

// The area under the ROC curve: the probability that a positive has a higher score than a negative, with ties counted
// half (the Mann–Whitney statistic; scikit-learn's roc_auc_score).  positive: 0 or 1 for each score.  NaN without
// positives or without negatives.  Throws Error for another number of labels, and for scores that are NaN.
double area_under_roc(std::span<const float> scores, std::span<const uint8_t> positive);

// The per-region overlap (Bergmann et al. 2021, "The MVTec Anomaly Detection Dataset", section 5.3): the mean, over
// regions, of the share of a region's pixels whose score reaches a threshold, as a function of the false positive
// rate; its area up to max_rate, divided by max_rate.  regions: 0 for a negative, else the number of the pixel's
// region, from 1 to `count`.  NaN without regions or without negatives.  Throws Error as area_under_roc().
double per_region_overlap(std::span<const float> scores, std::span<const int32_t> regions, int32_t count,
                          double max_rate = 0.3);

}  // namespace vitrail::analysis
