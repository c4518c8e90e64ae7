// SPDX-License-Identifier: Apache-2.0
// Panoptic quality against panopticapi's formula (tools/golden/panoptic_quality.py), and its rules one by one.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/analysis/panoptic_quality.h"
#include "vitrail/base/error.h"

namespace vitrail::analysis {
namespace {

std::span<const int32_t> ids_of(const Tensor& map) { return {map.data<int32_t>(), static_cast<size_t>(map.numel())}; }

std::vector<PanopticSegment> segments_of(const Tensor& rows) {
  std::vector<PanopticSegment> segments;
  for (int64_t i = 0; i < rows.size(0); ++i) {
    const int32_t* const row = rows.data<int32_t>() + 3 * i;
    segments.push_back({row[0], row[1], row[2] == 1});
  }
  return segments;
}

TEST(PanopticQuality, IsThatOfTheReference) {
  const testing::Golden golden = testing::read_golden(testing::fixture("analysis/panoptic_quality.safetensors"));
  const Tensor& scores = golden["scores"];
  PanopticQuality quality(scores.size(0));
  int images = 0;
  for (; golden.has(str("truth_", images)); ++images) {
    const auto truth = segments_of(golden[str("truth_segments_", images)]);
    const auto predicted = segments_of(golden[str("predicted_segments_", images)]);
    quality.add({ids_of(golden[str("truth_", images)]), truth}, {ids_of(golden[str("predicted_", images)]), predicted},
                "image");
  }
  EXPECT_EQ(images, 12);
  double sum = 0;
  for (int64_t c = 0; c < scores.size(0); ++c) {
    const auto score = quality.of(c);
    const double* const want = scores.data<double>() + 3 * c;
    if (std::isnan(want[0])) {
      EXPECT_TRUE(std::isnan(score.pq)) << c;
      continue;
    }
    EXPECT_NEAR(score.pq, want[0], 1e-12) << c;
    EXPECT_NEAR(score.sq, want[1], 1e-12) << c;
    EXPECT_NEAR(score.rq, want[2], 1e-12) << c;
    sum += want[0];
  }
  std::vector<int64_t> all(static_cast<size_t>(scores.size(0)));
  std::iota(all.begin(), all.end(), 0);
  const auto mean = quality.mean(all);
  EXPECT_EQ(mean.categories, 5) << "no image has the last one";
  EXPECT_NEAR(mean.pq, sum / 5, 1e-12);
}

using Ids = std::vector<int32_t>;
using Segments = std::vector<PanopticSegment>;

PanopticQuality::Score score_of(const Ids& truth, const Segments& true_ones, const Ids& predicted,
                                const Segments& found) {
  PanopticQuality quality(3);
  quality.add({truth, true_ones}, {predicted, found}, "image");
  return quality.of(1);
}

TEST(PanopticQuality, MatchesAboveHalf) {
  const Segments one{{7, 1}};
  EXPECT_NEAR(score_of({7, 7, 7, 0}, one, {7, 7, 0, 0}, one).pq, 2.0 / 3, 1e-12);
  EXPECT_EQ(score_of({7, 7, 0, 0}, one, {7, 0, 0, 0}, one).pq, 0) << "half is not enough";
  EXPECT_EQ(score_of({7, 7, 0, 0}, one, {7, 7, 0, 0}, {{7, 2}}).pq, 0) << "another category";
}

TEST(PanopticQuality, LeavesOutWhatIsNotAnnotated) {
  const Segments one{{7, 1}};
  EXPECT_EQ(score_of({7, 7, 0, 0}, one, {7, 7, 7, 7}, one).sq, 1);
  // A predicted segment for more than half without annotation is no false positive, for half it is.
  EXPECT_EQ(score_of({7, 7, 0, 0, 5}, {{7, 1}, {5, 2}}, {7, 7, 3, 3, 3}, {{7, 1}, {3, 1}}).rq, 1);
  EXPECT_NEAR(score_of({7, 7, 0, 5}, {{7, 1}, {5, 2}}, {7, 7, 3, 3}, {{7, 1}, {3, 1}}).rq, 1 / 1.5, 1e-12);
}

TEST(PanopticQuality, CrowdsAreNeitherMissedNorMatched) {
  const Segments crowd{{7, 1}, {5, 1, true}};
  EXPECT_EQ(score_of({7, 7, 5, 5}, crowd, {7, 7, 0, 0}, {{7, 1}}).rq, 1);
  EXPECT_EQ(score_of({7, 7, 5, 5}, crowd, {7, 7, 3, 4}, {{7, 1}, {3, 1}, {4, 1}}).rq, 1);
  EXPECT_NEAR(score_of({7, 7, 5, 5}, {{7, 1}, {5, 2, true}}, {7, 7, 3, 3}, {{7, 1}, {3, 1}}).rq, 1 / 1.5, 1e-12)
      << "a crowd of another category";
}

TEST(PanopticQuality, RefusesMapsThatDoNotFitTheirSegments) {
  const auto error = [](const Ids& truth, const Segments& segments) {
    return testing::error_of([&] { score_of(truth, segments, {0, 0}, {}); });
  };
  EXPECT_ERROR(error({7, 7, 7}, {{7, 1}}), "image", "3");
  EXPECT_ERROR(error({7, 8}, {{7, 1}}), "image", "none for id 8");
  EXPECT_ERROR(error({7, 7}, {{7, 1}, {8, 1}}), "image", "none of id 8");
  EXPECT_ERROR(error({7, 7}, {{7, 3}}), "image", "3");
  EXPECT_ERROR(error({7, 7}, {{7, 1}, {7, 2}}), "image", "id 7");
  EXPECT_ERROR(error({0, 0}, {{0, 1}}), "image", "id 0");
}

}  // namespace
}  // namespace vitrail::analysis
