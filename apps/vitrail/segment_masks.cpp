// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/segment_masks.h"

#include <algorithm>

namespace vitrail::app {

std::vector<SegmentMask> masks_of(const sam::Predictor& predictor, const sam::Masks& masks, const sam::Prompt& prompt,
                                  int64_t width, int64_t height) {
  std::vector<SegmentMask> result;
  const auto best = std::ranges::max_element(masks.iou) - masks.iou.begin();
  for (size_t m = 0; m < masks.iou.size(); ++m) {
    const auto index = static_cast<int64_t>(m);
    const Tensor logits = predictor.image_logits(masks.logits.select(0, index), width, height);
    const sam::BinaryMask pixels = sam::threshold(logits);
    SegmentMask mask{.rle = sam::encode(pixels),
                     .box = sam::bounding_box(pixels),
                     .predicted_iou = masks.iou[m],
                     .stability_score = sam::stability_score(logits, 1),
                     .crop = {0, 0, width, height},
                     .best = index == best};
    for (const sam::Point& point : prompt.points) mask.points.push_back({point.x, point.y});
    result.push_back(std::move(mask));
  }
  return result;
}

SegmentMask mask_of(const sam::AutomaticMask& mask) {
  return {.rle = mask.rle,
          .box = mask.box,
          .predicted_iou = mask.predicted_iou,
          .stability_score = mask.stability_score,
          .points = {mask.point},
          .crop = mask.crop};
}

Json rle_json(const sam::Rle& rle) { return {{"size", {rle.height, rle.width}}, {"counts", sam::to_coco(rle)}}; }

Json difference_box(const sam::PixelBox& box) { return {box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0}; }

Json coco_box(const SegmentMask& mask) {
  if (sam::area(mask.rle) == 0) return {0, 0, 0, 0};
  const sam::PixelBox& box = mask.box;
  return {box.x0, box.y0, box.x1 - box.x0 + 1, box.y1 - box.y0 + 1};
}

Json automatic_record(const SegmentMask& mask) {
  return {{"segmentation", rle_json(mask.rle)},   {"area", sam::area(mask.rle)},
          {"bbox", difference_box(mask.box)},     {"predicted_iou", mask.predicted_iou},
          {"point_coords", mask.points},          {"stability_score", mask.stability_score},
          {"crop_box", difference_box(mask.crop)}};
}

Json prompt_record(const SegmentMask& mask) {
  return {{"iou", mask.predicted_iou},
          {"area", sam::area(mask.rle)},
          {"bbox", coco_box(mask)},
          {"rle", rle_json(mask.rle)}};
}

}  // namespace vitrail::app
