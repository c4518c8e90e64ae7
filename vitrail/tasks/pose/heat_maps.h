// SPDX-License-Identifier: Apache-2.0
#pragma once
// The crop of a person at a model's input, and key points in the heat maps of it, as transformers'
// VitPoseImageProcessor.
#include <array>
#include <vector>

#include "vitrail/image/image_view.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::tasks {

// What a crop shows of an image: the centres of its corner pixels are at center ± size / 2.
struct CropRegion {
  std::array<double, 2> center{}, size{};  // x, y; width, height
};

// A box {left, top, width, height}, grown to the ratio of a crop {height, width} and by a quarter.
CropRegion crop_region(const std::array<double, 4>& box, const std::array<int64_t, 2>& crop);

// RGB of {height, width}, bilinear; what is outside the image is black.
image::Image cropped(const image::ImageView& photo, const CropRegion& region, const std::array<int64_t, 2>& crop);

struct Keypoint {
  double x = 0, y = 0;  // pixels of the image
  float score = 0;      // the largest value of its heat map
};

// The key points of heat maps [K, h, w] of a region, each at the largest value of its map.  A step of Newton's method
// on the logarithm of the smoothed map refines it (DARK: Zhang et al. 2020, "Distribution-Aware Coordinate
// Representation for Human Pose Estimation").  One without a value above 0 is at (−1, −1) of its map.
std::vector<Keypoint> keypoints_of(const Tensor& heat_maps, const CropRegion& region);

// The mean of heat maps and those of the mirrored crop, [K, h, w] both.  mirrored: the index of the counterpart of each
// key point.
Tensor mean_with_mirrored(const Tensor& heat_maps, const Tensor& of_mirrored, const std::vector<int64_t>& mirrored);

}  // namespace vitrail::tasks
