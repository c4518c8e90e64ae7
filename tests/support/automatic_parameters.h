// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parameters of segment_anything's SamAutomaticMaskGenerator in the fixtures.
#include <nlohmann/json.hpp>

#include "vitrail/sam/automatic.h"

namespace vitrail::testing {

inline sam::AutomaticOptions automatic_options(const nlohmann::json& parameters) {
  sam::AutomaticOptions options;
  const auto set = [&](const char* name, auto& value) {
    if (parameters.contains(name) && !parameters[name].is_null()) parameters[name].get_to(value);
  };
  set("points_per_side", options.points_per_side);
  set("points_per_batch", options.points_per_batch);
  double pred_iou_thresh = sam::kPredIouThresh;
  set("pred_iou_thresh", pred_iou_thresh);
  options.pred_iou_thresh = pred_iou_thresh;
  set("stability_score_thresh", options.stability_score_thresh);
  set("stability_score_offset", options.stability_score_offset);
  set("box_nms_thresh", options.box_nms_thresh);
  set("crop_n_layers", options.crop_n_layers);
  set("crop_nms_thresh", options.crop_nms_thresh);
  set("crop_overlap_ratio", options.crop_overlap_ratio);
  set("crop_n_points_downscale_factor", options.crop_n_points_downscale_factor);
  set("point_grids", options.point_grids);
  set("min_mask_region_area", options.min_mask_region_area);
  return options;
}

}  // namespace vitrail::testing
