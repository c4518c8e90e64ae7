// SPDX-License-Identifier: Apache-2.0
#pragma once
// Label maps from queries, each with a class and a mask (Cheng et al. 2021, "Per-pixel classification is not all you
// need for semantic segmentation"), as transformers' EomtImageProcessor computes them.
#include <array>
#include <cstdint>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::analysis {

// The outputs for one input of the model.
struct QueryMasks {
  Tensor classes;  // logits [Q, C + 1], the last one of "no object"
  Tensor masks;    // logits [Q, h, w]
};

// The size of the image, and its size at the input, which is a square with this side.  It may be smaller than the
// input, with padding beyond it.
struct QueryPlacement {
  int64_t side = 0;
  std::array<int64_t, 2> resized{}, size{};  // height, width
};

struct QuerySegment {
  int32_t id = 0;  // from 1
  int64_t label = 0;
  float score = 0;
};

struct QuerySegments {
  std::vector<int32_t> ids;            // [height, width]: the segment of each pixel; 0: none
  std::vector<QuerySegment> segments;  // those that have pixels, by id
};

struct PanopticOptions {
  float threshold = 0.8F;                // queries with a larger score are kept
  float mask_threshold = 0.5F;           // for the probabilities of a mask
  float overlap_threshold = 0.8F;        // the share of its mask that a query must win from the others
  std::vector<int64_t> stuff_classes{};  // all segments of such a class are one
};

// A pixel belongs to the query with the largest product of score and mask probability, if the probability reaches
// mask_threshold.
QuerySegments panoptic_segments(const QueryMasks& output, const QueryPlacement& placement,
                                const PanopticOptions& options = {});

// A query's score is that of its class times the mean probability inside its mask.  Where masks overlap, a later query
// has the pixel.
QuerySegments instance_segments(const QueryMasks& output, const QueryPlacement& placement, float threshold = 0.8F);

// The label of each pixel [height, width]: the largest Σ_q class probability · mask probability.  There is an
// output for each crop of the resized image, which begins at `starts` along its height (vertical) or width; where crops
// overlap, the sums are averaged.
std::vector<int32_t> semantic_labels(const std::vector<QueryMasks>& crops, const std::vector<int64_t>& starts,
                                     bool vertical, const QueryPlacement& placement);

}  // namespace vitrail::analysis
