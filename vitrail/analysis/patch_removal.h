// SPDX-License-Identifier: Apache-2.0
#pragma once
// What patches contribute to a score y(x) of an image x [1, C, H, W] in f32, by passes without them.
#include <vector>

#include "vitrail/analysis/pixel_attribution.h"

namespace vitrail::analysis {

// y of each image: [B, C, H, W] → B values.
using ScoresOf = std::function<std::vector<float>(const Tensor& images)>;

constexpr int64_t kImagesPerPass = 16;  // bounds the memory of passes

// y(x) − y(x without the patch) [rows, columns], for each patch alone (Zeiler & Fergus 2014, section 4.2).  A patch
// that is removed has the baseline's pixels; baseline: of the image's shape.
Tensor leave_one_patch_out(const Tensor& image, const Tensor& baseline, const PatchGrid& patches,
                           const ScoresOf& scores);

// The patches of a map [rows, columns], the highest value first; of equal values the first patch.
std::vector<int64_t> descending_patches(const Tensor& map);

// y while patches, in this order, get the pixels of `to`: after none, one, … and all of them, or in `steps` equal parts
// of them; and the area below, with the share of steps from 0 to 1 on the axis (trapezoids).  Deletion goes from the
// image to its baseline, insertion from the blurred image to the image (Petsiuk et al. 2018, RISE, section 4.2, by
// patch instead of by pixel).
struct PatchCurve {
  std::vector<float> scores;
  double area = 0;
};
PatchCurve patch_curve(const Tensor& from, const Tensor& to, const std::vector<int64_t>& order,
                       const PatchGrid& patches, const ScoresOf& scores, int64_t steps = 0);

}  // namespace vitrail::analysis
