// SPDX-License-Identifier: Apache-2.0
#pragma once
// How close a predicted depth map is to a measured one (Eigen et al. 2014, "Depth Map Prediction from a Single Image
// using a Multi-Scale Deep Network", section 4.1).
#include <cstdint>
#include <span>
#include <vector>

namespace vitrail::analysis {

struct DepthErrors {
  double abs_rel = 0;  // mean of |prediction − depth| / depth
  double rmse = 0;     // root of the mean of (prediction − depth)², in the unit of the depth
  double delta1 = 0;   // share of pixels with max(prediction / depth, depth / prediction) < 1.25
  int64_t pixels = 0;  // the number with known depth
};

// Over the pixels of known depth, those above 0 and finite; without any, all values are NaN.  Throws Error for another
// number of values, and for predictions that are not finite.
DepthErrors depth_errors(std::span<const float> predicted, std::span<const float> depth);

// Depth from a prediction of inverse depth without scale and offset: the least squares of scale · prediction + offset
// against 1 / depth over the pixels of known depth, then its inverse, at most the largest known depth (Ranftl et al.
// 2020, "Towards Robust Monocular Depth Estimation", section 5).  Throws Error as depth_errors().
std::vector<float> aligned_depth(std::span<const float> predicted, std::span<const float> depth);

}  // namespace vitrail::analysis
