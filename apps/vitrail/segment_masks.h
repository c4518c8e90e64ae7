// SPDX-License-Identifier: Apache-2.0
#pragma once
// The masks that `vitrail segment` finds, and how they are written.
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "vitrail/sam/automatic.h"

namespace vitrail::app {

struct SegmentMask {
  sam::Rle rle = {};
  sam::PixelBox box = {};  // with column x1 and row y1
  float predicted_iou = 0, stability_score = 0;
  std::vector<std::array<double, 2>> points = {};  // those of the prompt
  sam::PixelBox crop = {};                         // without column x1 and row y1
  size_t prompt = 0;                               // the number of the prompt
  bool best = true;                                // whether its IoU is the highest of its prompt
};

// The masks of a prompt at the image's size.
std::vector<SegmentMask> masks_of(const sam::Predictor& predictor, const sam::Masks& masks, const sam::Prompt& prompt,
                                  int64_t width, int64_t height);
SegmentMask mask_of(const sam::AutomaticMask& mask);

using Json = nlohmann::ordered_json;

Json rle_json(const sam::Rle& rle);  // {"size": [h, w], "counts": "…"}
// [x, y, w, h] of segment_anything: w and h are differences of the first and the last column and row.
Json difference_box(const sam::PixelBox& box);
// [x, y, w, h] of COCO: w and h are numbers of columns and rows.
Json coco_box(const SegmentMask& mask);
// The record of segment_anything's SamAutomaticMaskGenerator.
Json automatic_record(const SegmentMask& mask);
// {"iou": …, "area": …, "bbox": [x, y, w, h], "rle": …}
Json prompt_record(const SegmentMask& mask);

}  // namespace vitrail::app
