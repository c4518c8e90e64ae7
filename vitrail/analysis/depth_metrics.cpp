// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/depth_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "vitrail/base/error.h"

namespace vitrail::analysis {
namespace {

bool is_known(float depth) { return depth > 0 && std::isfinite(depth); }

// Calls `use(prediction, depth)` for each pixel of known depth, and returns how many there are.
template <class Use>
int64_t for_each_known(std::span<const float> predicted, std::span<const float> depth, const Use& use) {
  if (predicted.size() != depth.size())
    throw Error("depth", str(depth.size(), " predictions, one per value of the depth map"), str(predicted.size()));
  int64_t count = 0;
  for (size_t i = 0; i < depth.size(); ++i) {
    if (!std::isfinite(predicted[i])) throw Error("depth", "finite predictions", str(predicted[i], " at pixel ", i));
    if (!is_known(depth[i])) continue;
    use(static_cast<double>(predicted[i]), static_cast<double>(depth[i]));
    ++count;
  }
  return count;
}

}  // namespace

DepthErrors depth_errors(std::span<const float> predicted, std::span<const float> depth) {
  constexpr double kThreshold = 1.25;
  DepthErrors sums;
  sums.pixels = for_each_known(predicted, depth, [&](double prediction, double truth) {
    const double error = prediction - truth;
    sums.abs_rel += std::abs(error) / truth;
    sums.rmse += error * error;
    if (prediction > 0 && std::max(prediction / truth, truth / prediction) < kThreshold) ++sums.delta1;
  });
  const auto count = static_cast<double>(sums.pixels);  // 0 / 0 is NaN
  return {sums.abs_rel / count, std::sqrt(sums.rmse / count), sums.delta1 / count, sums.pixels};
}

std::vector<float> aligned_depth(std::span<const float> predicted, std::span<const float> depth) {
  double mean_x = 0, mean_y = 0, largest = 0;
  const int64_t count = for_each_known(predicted, depth, [&](double prediction, double truth) {
    mean_x += prediction;
    mean_y += 1 / truth;
    largest = std::max(largest, truth);
  });
  if (count == 0) return std::vector<float>(predicted.size(), std::numeric_limits<float>::quiet_NaN());
  mean_x /= static_cast<double>(count);
  mean_y /= static_cast<double>(count);
  double covariance = 0, variance = 0;
  for_each_known(predicted, depth, [&](double prediction, double truth) {
    covariance += (prediction - mean_x) * (1 / truth - mean_y);
    variance += (prediction - mean_x) * (prediction - mean_x);
  });
  const double scale = variance > 0 ? covariance / variance : 0, offset = mean_y - scale * mean_x;
  std::vector<float> result(predicted.size());
  std::ranges::transform(predicted, result.begin(), [&](float value) {
    return static_cast<float>(1 / std::max(scale * static_cast<double>(value) + offset, 1 / largest));
  });
  return result;
}

}  // namespace vitrail::analysis
