// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/box_nms.h"

#include <algorithm>
#include <numeric>

#include "vitrail/base/error.h"

namespace vitrail::sam {
namespace {

float area_of(const PixelBox& box) { return static_cast<float>(box.x1 - box.x0) * static_cast<float>(box.y1 - box.y0); }

// NaN for two boxes without area.
float iou_of(const PixelBox& a, const PixelBox& b) {
  const PixelBox common{std::max(a.x0, b.x0), std::max(a.y0, b.y0), std::min(a.x1, b.x1), std::min(a.y1, b.y1)};
  const float inter = common.x1 > common.x0 && common.y1 > common.y0 ? area_of(common) : 0.0F;
  return inter / (area_of(a) + area_of(b) - inter);
}

}  // namespace

std::vector<size_t> box_nms(std::span<const PixelBox> boxes, std::span<const float> scores, double iou_threshold) {
  if (boxes.size() != scores.size()) throw Error("box_nms", str(boxes.size(), " scores"), str(scores.size()));
  std::vector<size_t> order(boxes.size()), kept;
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  for (const size_t candidate : order) {
    const bool suppressed = std::ranges::any_of(kept, [&](size_t better) {
      return static_cast<double>(iou_of(boxes[better], boxes[candidate])) > iou_threshold;
    });
    if (!suppressed) kept.push_back(candidate);
  }
  return kept;
}

}  // namespace vitrail::sam
