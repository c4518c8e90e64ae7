// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/segment_masks_internal.h"

#include <algorithm>

#include "vitrail/sam/mask_overlay.h"

namespace vitrail::sam {
namespace {

Json prompt_record(const SegmentMask& mask) {
  return {{"iou", mask.predicted_iou}, {"area", area(mask.rle)}, {"bbox", coco_box(mask)}, {"rle", rle_json(mask.rle)}};
}

}  // namespace

std::vector<SegmentMask> masks_of(const Predictor& predictor, const Masks& masks, const Prompt& prompt, int64_t width,
                                  int64_t height) {
  std::vector<SegmentMask> result;
  const auto best = std::ranges::max_element(masks.iou) - masks.iou.begin();
  for (size_t m = 0; m < masks.iou.size(); ++m) {
    const auto index = static_cast<int64_t>(m);
    const Tensor logits = predictor.image_logits(masks.logits.select(0, index), width, height);
    const BinaryMask pixels = threshold(logits);
    SegmentMask mask{.rle = encode(pixels),
                     .box = bounding_box(pixels),
                     .predicted_iou = masks.iou[m],
                     .stability_score = stability_score(logits, 1),
                     .crop = {0, 0, width, height},
                     .best = index == best};
    for (const Point& point : prompt.points) mask.points.push_back({point.x, point.y});
    result.push_back(std::move(mask));
  }
  return result;
}

SegmentMask mask_of(const AutomaticMask& mask) {
  return {.rle = mask.rle,
          .box = mask.box,
          .predicted_iou = mask.predicted_iou,
          .stability_score = mask.stability_score,
          .points = {mask.point},
          .crop = mask.crop};
}

Json rle_json(const Rle& rle) { return {{"size", {rle.height, rle.width}}, {"counts", to_coco(rle)}}; }

Json difference_box(const PixelBox& box) { return {box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0}; }

std::array<int64_t, 4> coco_box(const SegmentMask& mask) {
  if (area(mask.rle) == 0) return {0, 0, 0, 0};
  const PixelBox& box = mask.box;
  return {box.x0, box.y0, box.x1 - box.x0 + 1, box.y1 - box.y0 + 1};
}

Json automatic_record(const SegmentMask& mask) {
  return {{"segmentation", rle_json(mask.rle)},   {"area", area(mask.rle)},
          {"bbox", difference_box(mask.box)},     {"predicted_iou", mask.predicted_iou},
          {"point_coords", mask.points},          {"stability_score", mask.stability_score},
          {"crop_box", difference_box(mask.crop)}};
}

Json prompt_json(const std::string& path, size_t prompt, std::span<const SegmentMask> masks) {
  Json records = Json::array();
  for (const SegmentMask& mask : masks) records.push_back(prompt_record(mask));
  return {{"image", path}, {"prompt", prompt}, {"masks", std::move(records)}};
}

Json everything_json(const std::string& path, std::span<const SegmentMask> masks) {
  Json records = Json::array();
  for (const SegmentMask& mask : masks) records.push_back(automatic_record(mask));
  return {{"image", path}, {"masks", std::move(records)}};
}

image::Image best_masks_overlay(const image::Image& photo, std::span<const SegmentMask> masks, double opacity) {
  std::vector<Rle> shown;
  for (const SegmentMask& mask : masks) {
    if (mask.best) shown.push_back(mask.rle);
  }
  return mask_overlay(photo, shown, opacity);
}

}  // namespace vitrail::sam
