// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/fields.h"
#include "vitrail/sam/automatic.h"

namespace vitrail::sam {

void describe_automatic(Fields& f, AutomaticOptions& o) {
  constexpr Range kUnit{0, 1};
  f.integer({"points_per_side", "Points per side of the grid"}, o.points_per_side, 1);
  f.integer({"points_per_batch", "Points that run together"}, o.points_per_batch, 1);
  f.number({"pred_iou_thresh", "Masks of a smaller predicted IoU are dropped; 0: none (default: 0.88, of SAM 2 0.8)"},
           o.pred_iou_thresh);
  f.number({"stability_score_thresh", "Masks of a smaller stability are dropped; 0: none"}, o.stability_score_thresh);
  f.number({"stability_score_offset", "Shift of the logits that stability is about"}, o.stability_score_offset, {0});
  f.number({"box_nms_thresh", "IoU of boxes above which a mask is a duplicate"}, o.box_nms_thresh, kUnit);
  f.integer({"crop_n_layers", "Layers of crops: layer i has 2^i × 2^i of them"}, o.crop_n_layers, 0, 8);
  f.number({"crop_nms_thresh", "The same as --box-nms-thresh between crops"}, o.crop_nms_thresh, kUnit);
  f.number({"crop_overlap_ratio", "Overlap of crops, relative to the image's shorter side"}, o.crop_overlap_ratio,
           kUnit);
  f.integer({"crop_n_points_downscale_factor", "Layer i has points-per-side / factor^i points per side"},
            o.crop_n_points_downscale_factor, 1);
  f.integer({"min_mask_region_area", "Holes and islands of fewer pixels are removed from the masks; 0: none"},
            o.min_mask_region_area, 0);
  f.integer({"min_area", "Masks of fewer pixels are left out"}, o.min_area, 0);
  f.integer({"max_area", "Masks of more pixels are left out"}, o.max_area, 0);
}

}  // namespace vitrail::sam
