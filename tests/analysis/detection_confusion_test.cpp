// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/detection_confusion.h"

#include <gtest/gtest.h>

namespace vitrail::analysis {
namespace {

// overlaps [detections][truths]
DetectionConfusion::Errors add(DetectionConfusion& confusion, const std::vector<CocoTruth>& truths,
                               const std::vector<CocoDetection>& detections,
                               const std::vector<std::vector<double>>& overlaps) {
  return confusion.add(truths, detections, [&](size_t d, size_t t) { return overlaps[d][t]; });
}

TEST(DetectionConfusion, PairsThoseOfAClassBeforeLargerOverlaps) {
  DetectionConfusion confusion(2);
  const auto errors = add(confusion, {{0}, {1}}, {{1, 0.9}, {0, 0.8}}, {{0.9, 0.5}, {0.6, 0}});
  EXPECT_EQ(errors.right, 2);
  EXPECT_EQ(errors.count(), 0);
  EXPECT_EQ(confusion.counts(), (std::vector<std::vector<int64_t>>{{1, 0, 0}, {0, 1, 0}, {0, 0, 0}}));
}

TEST(DetectionConfusion, CountsOtherClassesMissedAndWrong) {
  DetectionConfusion confusion(2);
  const auto errors = add(confusion, {{0}, {1}}, {{1, 0.9}, {1, 0.8}}, {{0.9, 0}, {0, 0.49}});
  EXPECT_EQ(errors.confused, 1);
  EXPECT_EQ(errors.missed, 1);
  EXPECT_EQ(errors.wrong, 1);
  EXPECT_EQ(confusion.counts(), (std::vector<std::vector<int64_t>>{{0, 1, 0}, {0, 0, 1}, {0, 1, 0}}));
}

TEST(DetectionConfusion, LeavesOutCrowdsAndWhatIsInThem) {
  DetectionConfusion confusion(1);
  const auto errors = add(confusion, {{0, 0, true}, {0}}, {{0, 0.9}, {0, 0.8}}, {{1, 0}, {1, 0.7}});
  EXPECT_EQ(errors.right, 1);
  EXPECT_EQ(errors.count(), 0);
}

}  // namespace
}  // namespace vitrail::analysis
