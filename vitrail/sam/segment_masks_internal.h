// SPDX-License-Identifier: Apache-2.0
#pragma once
// The masks of prompts and of everything in an image, and how the command line and the server write them.
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "vitrail/sam/automatic.h"

namespace vitrail::sam {

struct SegmentMask {
  Rle rle = {};
  PixelBox box = {};  // with column x1 and row y1
  float predicted_iou = 0, stability_score = 0;
  std::vector<std::array<double, 2>> points = {};  // those of the prompt
  PixelBox crop = {};                              // without column x1 and row y1
  size_t prompt = 0;                               // the number of the prompt
  bool best = true;                                // whether its IoU is the highest of its prompt
};

// The masks of a prompt at the image's size.
std::vector<SegmentMask> masks_of(const Predictor& predictor, const Masks& masks, const Prompt& prompt, int64_t width,
                                  int64_t height);
SegmentMask mask_of(const AutomaticMask& mask);

using Json = nlohmann::ordered_json;

Json rle_json(const Rle& rle);  // {"size": [h, w], "counts": "…"}
// [x, y, w, h] of segment_anything: w and h are differences of the first and the last column and row.
Json difference_box(const PixelBox& box);
// [x, y, w, h] of COCO: w and h are numbers of columns and rows.
std::array<int64_t, 4> coco_box(const SegmentMask& mask);  // all 0 for an empty mask
// The record of segment_anything's SamAutomaticMaskGenerator.
Json automatic_record(const SegmentMask& mask);
// {"image", "prompt", "masks": [{"iou": …, "area": …, "bbox": [x, y, w, h], "rle": …}, …]}
Json prompt_json(const std::string& path, size_t prompt, std::span<const SegmentMask> masks);
// {"image", "masks": [automatic_record(), …]}
Json everything_json(const std::string& path, std::span<const SegmentMask> masks);

// The best mask of each prompt over its image, as mask_overlay().
image::Image best_masks_overlay(const image::Image& photo, std::span<const SegmentMask> masks, double opacity);

}  // namespace vitrail::sam
