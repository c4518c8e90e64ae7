// SPDX-License-Identifier: Apache-2.0
// Label maps of masks that are drawn here.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/analysis/query_segments.h"

namespace vitrail::analysis {
namespace {

// One row of four pixels, at the input and in the image.
constexpr QueryPlacement kRow{4, {1, 4}, {1, 4}};

float logit(double p) { return static_cast<float>(std::log(p / (1 - p))); }

struct Drawn {
  std::vector<float> classes;  // probabilities, "no object" last
  std::vector<double> mask;    // probabilities of the row
};

// The masks fill an input of 4×4, whose other rows are padding.
QueryMasks outputs(const std::vector<Drawn>& queries) {
  const auto count = static_cast<int64_t>(queries.size()), classes = static_cast<int64_t>(queries[0].classes.size());
  QueryMasks result{Tensor::empty({count, classes}), Tensor::full({count, 4, 4}, 5)};
  for (size_t q = 0; q < queries.size(); ++q) {
    for (size_t c = 0; c < queries[q].classes.size(); ++c)
      result.classes.data<float>()[q * queries[q].classes.size() + c] = std::log(queries[q].classes[c]);
    for (size_t x = 0; x < 4; ++x) result.masks.data<float>()[q * 16 + x] = logit(queries[q].mask[x]);
  }
  return result;
}

using Ids = std::vector<int32_t>;

TEST(PanopticSegments, KeepSureQueriesThatWinTheirMask) {
  const std::vector<Drawn> queries{{{0.9F, 0.05F, 0.05F}, {0.9, 0.9, 0.1, 0.1}},
                                   {{0.05F, 0.05F, 0.9F}, {0.99, 0.99, 0.99, 0.99}},  // no object
                                   {{0.3F, 0.7F, 0.001F}, {0.99, 0.99, 0.99, 0.99}},  // not sure
                                   {{0.05F, 0.95F, 0.001F}, {0.1, 0.8, 0.8, 0.08}}};
  const QuerySegments sure = panoptic_segments(outputs(queries), kRow);
  ASSERT_EQ(sure.segments.size(), 1) << "the last query wins one pixel of its two";
  EXPECT_EQ(sure.ids, (Ids{1, 1, 0, 0}));
  EXPECT_EQ(sure.segments[0].label, 0);
  EXPECT_NEAR(sure.segments[0].score, 0.9, 1e-6);
  const QuerySegments all = panoptic_segments(outputs(queries), kRow, {.overlap_threshold = 0.45F});
  EXPECT_EQ(all.ids, (Ids{1, 1, 2, 0})) << "the last pixel is in no mask";
  EXPECT_EQ(all.segments[1].label, 1);
  const QuerySegments wide =
      panoptic_segments(outputs(queries), kRow, {.mask_threshold = 0.05F, .overlap_threshold = 0});
  EXPECT_EQ(wide.ids, (Ids{1, 1, 2, 1}));
}

TEST(PanopticSegments, StuffOfAClassIsOneSegment) {
  const std::vector<Drawn> queries{{{0.9F, 0.05F, 0.05F}, {0.9, 0.1, 0.1, 0.1}},
                                   {{0.05F, 0.9F, 0.05F}, {0.1, 0.9, 0.1, 0.1}},
                                   {{0.9F, 0.05F, 0.05F}, {0.1, 0.1, 0.9, 0.1}},
                                   {{0.05F, 0.9F, 0.05F}, {0.1, 0.1, 0.1, 0.9}}};
  EXPECT_EQ(panoptic_segments(outputs(queries), kRow).ids, (Ids{1, 2, 3, 4}));
  const QuerySegments stuff = panoptic_segments(outputs(queries), kRow, {.stuff_classes = {0}});
  EXPECT_EQ(stuff.ids, (Ids{1, 2, 1, 3}));
  EXPECT_EQ(stuff.segments.size(), 3);
}

TEST(PanopticSegments, WithoutAQueryThereIsNothing) {
  const QuerySegments none = panoptic_segments(outputs({{{0.1F, 0.1F, 0.8F}, {0.9, 0.9, 0.9, 0.9}}}), kRow);
  EXPECT_TRUE(none.segments.empty());
  EXPECT_EQ(none.ids, (Ids{0, 0, 0, 0}));
}

TEST(InstanceSegments, ScoresAreThoseOfTheClassAndOfTheMask) {
  const std::vector<Drawn> queries{{{0.98F, 0.01F, 0.01F}, {0.1, 0.9, 0.7, 0.1}},  // hidden by the next two
                                   {{0.01F, 0.98F, 0.01F}, {0.1, 0.95, 0.1, 0.1}},
                                   {{0.01F, 0.98F, 0.01F}, {0.1, 0.1, 0.85, 0.85}},
                                   {{0.98F, 0.01F, 0.01F}, {0.6, 0.6, 0.6, 0.6}},   // 0.59
                                   {{0.98F, 0.01F, 0.01F}, {0.1, 0.1, 0.1, 0.1}}};  // an empty mask
  const QuerySegments high = instance_segments(outputs(queries), kRow, 0.75F);
  EXPECT_EQ(high.ids, (Ids{0, 2, 3, 3}));
  ASSERT_EQ(high.segments.size(), 2) << "the first one has no pixel left";
  EXPECT_EQ(high.segments[0].id, 2);
  EXPECT_EQ(high.segments[0].label, 1);
  EXPECT_NEAR(high.segments[0].score, 0.98 * 0.95, 1e-5);
  EXPECT_EQ(instance_segments(outputs(queries), kRow, 0.5F).ids, (Ids{4, 4, 4, 4}));
}

// Two crops that overlap by half of their width.
TEST(SemanticLabels, AverageWhereCropsOverlap) {
  const auto crop = [](std::vector<double> first, std::vector<double> second) {
    QueryMasks result = outputs({{{0.999F, 0.0005F, 0.0005F}, first}, {{0.0005F, 0.999F, 0.0005F}, second}});
    for (int64_t q = 0; q < 2; ++q) {
      const Tensor mask = result.masks.select(0, q);
      for (int64_t y = 1; y < 4; ++y) mask.select(0, y).copy_(mask.select(0, 0));
    }
    return result;
  };
  const std::vector<QueryMasks> crops{crop({0.9, 0.9, 0.9, 0.4}, {0.1, 0.1, 0.2, 0.5}),
                                      crop({0.1, 0.2, 0.1, 0.1}, {0.7, 0.5, 0.9, 0.9})};
  const QueryPlacement wide{4, {4, 6}, {4, 6}};
  const std::vector<int32_t> labels = semantic_labels(crops, {0, 2}, false, wide);
  const std::vector<int32_t> row{0, 0, 0, 1, 1, 1};  // the third: (0.9 + 0.1) / 2 against (0.2 + 0.7) / 2
  for (size_t i = 0; i < labels.size(); ++i) EXPECT_EQ(labels[i], row[i % 6]) << i;
  EXPECT_ERROR(testing::error_of([&] { semantic_labels(crops, {0}, false, wide); }), "crops", "1");
  EXPECT_ERROR(testing::error_of([&] {
                 panoptic_segments({crops[0].classes, crops[0].classes}, kRow);
               }),
               "queries", "[2, 3] and [2, 3]");
}

}  // namespace
}  // namespace vitrail::analysis
