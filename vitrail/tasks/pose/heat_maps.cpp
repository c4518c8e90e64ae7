// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/pose/heat_maps.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "vitrail/image/gaussian.h"

namespace vitrail::tasks {
namespace {

// A position between two pixels of a line of n.
struct Sample {
  int64_t first = 0, second = 0;
  double second_weight = 0;
  bool inside = false;
};

Sample sample_at(double position, int64_t n) {
  if (!(position >= 0 && position <= static_cast<double>(n - 1))) return {};
  const auto first = static_cast<int64_t>(position);
  return {first, std::min(first + 1, n - 1), position - static_cast<double>(first), true};
}

// The samples of the pixels of a crop along an axis.
std::vector<Sample> samples_of(double center, double size, int64_t pixels, int64_t n) {
  std::vector<Sample> samples;
  const double last = static_cast<double>(std::max<int64_t>(pixels - 1, 1));
  for (int64_t i = 0; i < pixels; ++i)
    samples.push_back(sample_at(center + (static_cast<double>(i) / last - 0.5) * size, n));
  return samples;
}

// The logarithm of a smoothed heat map, whose edges are repeated.
class LogMap {
 public:
  explicit LogMap(const Tensor& heat_map) : height_(heat_map.size(0)), width_(heat_map.size(1)) {
    constexpr double kSigma = 0.8;
    constexpr int64_t kRadius = 5;
    smoothed_ = image::gaussian_filter(heat_map, kSigma, kRadius);
  }

  double at(int64_t x, int64_t y) const {
    constexpr float kMin = 0.001F, kMax = 50;
    const int64_t column = std::clamp<int64_t>(x, 0, width_ - 1), row = std::clamp<int64_t>(y, 0, height_ - 1);
    return std::log(static_cast<double>(std::clamp(smoothed_.data<float>()[row * width_ + column], kMin, kMax)));
  }

  // (Hessian + ε·I)⁻¹ · gradient at a pixel.
  std::array<double, 2> step_at(int64_t x, int64_t y) const {
    constexpr double kEpsilon = std::numeric_limits<float>::epsilon();
    const auto value = [&](int64_t dx, int64_t dy) { return at(x + dx, y + dy); };
    const double here = value(0, 0);
    const double d_x = (value(1, 0) - value(-1, 0)) / 2, d_y = (value(0, 1) - value(0, -1)) / 2;
    const double d_xx = value(1, 0) - 2 * here + value(-1, 0) + kEpsilon;
    const double d_yy = value(0, 1) - 2 * here + value(0, -1) + kEpsilon;
    const double d_xy =
        (value(1, 1) - value(1, 0) - value(0, 1) + 2 * here - value(-1, 0) - value(0, -1) + value(-1, -1)) / 2;
    const double determinant = d_xx * d_yy - d_xy * d_xy;
    if (determinant == 0) return {0, 0};
    return {(d_yy * d_x - d_xy * d_y) / determinant, (d_xx * d_y - d_xy * d_x) / determinant};
  }

 private:
  int64_t height_, width_;
  Tensor smoothed_;
};

}  // namespace

CropRegion crop_region(const std::array<double, 4>& box, const std::array<int64_t, 2>& crop) {
  constexpr double kGrowth = 1.25;
  const auto [left, top, box_width, box_height] = box;
  const double ratio = static_cast<double>(crop[1]) / static_cast<double>(crop[0]);
  const double width = std::max(box_width, box_height * ratio), height = std::max(box_height, box_width / ratio);
  return {{left + box_width / 2, top + box_height / 2}, {width * kGrowth, height * kGrowth}};
}

image::Image cropped(const image::ImageView& photo, const CropRegion& region, const std::array<int64_t, 2>& crop) {
  const auto [height, width] = crop;
  const image::Image rgb = image::to_image(photo, image::ColorMode::rgb);
  const std::vector<Sample> columns = samples_of(region.center[0], region.size[0], width, rgb.width);
  const std::vector<Sample> rows = samples_of(region.center[1], region.size[1], height, rgb.height);
  image::Image result = image::make_image(width, height, 3);
  for (int64_t y = 0; y < height; ++y) {
    const Sample& row = rows[static_cast<size_t>(y)];
    if (!row.inside) continue;
    const uint8_t *const above = rgb.row(row.first), *const below = rgb.row(row.second);
    for (int64_t x = 0; x < width; ++x) {
      const Sample& column = columns[static_cast<size_t>(x)];
      if (!column.inside) continue;
      for (int64_t c = 0; c < 3; ++c) {
        const auto mixed = [&](const uint8_t* line) {
          const double first = line[3 * column.first + c], second = line[3 * column.second + c];
          return first + (second - first) * column.second_weight;
        };
        const double top = mixed(above), value = top + (mixed(below) - top) * row.second_weight;
        result.row(y)[3 * x + c] = static_cast<uint8_t>(value + 0.5);
      }
    }
  }
  return result;
}

std::vector<Keypoint> keypoints_of(const Tensor& heat_maps, const CropRegion& region) {
  const int64_t height = heat_maps.size(1), width = heat_maps.size(2);
  std::vector<Keypoint> keypoints;
  for (int64_t k = 0; k < heat_maps.size(0); ++k) {
    const Tensor map = heat_maps.select(0, k).contiguous();
    const float* const values = map.data<float>();
    const int64_t best = std::max_element(values, values + map.numel()) - values;
    std::array<double, 2> position{-1, -1};
    if (values[best] > 0) {
      const int64_t x = best % width, y = best / width;
      const auto [step_x, step_y] = LogMap(map).step_at(x, y);
      position = {static_cast<double>(x) - step_x, static_cast<double>(y) - step_y};
    }
    const auto in_image = [&](size_t axis, int64_t cells) {
      return position[axis] * region.size[axis] / static_cast<double>(std::max<int64_t>(cells - 1, 1)) +
             region.center[axis] - region.size[axis] / 2;
    };
    keypoints.push_back({in_image(0, width), in_image(1, height), values[best]});
  }
  return keypoints;
}

Tensor mean_with_mirrored(const Tensor& heat_maps, const Tensor& of_mirrored, const std::vector<int64_t>& mirrored) {
  const int64_t height = heat_maps.size(1), width = heat_maps.size(2);
  const Tensor mean = Tensor::empty(heat_maps.shape());
  const Tensor own = heat_maps.contiguous(), other = of_mirrored.contiguous();
  for (int64_t k = 0; k < heat_maps.size(0); ++k) {
    for (int64_t y = 0; y < height; ++y) {
      const float* const here = own.data<float>() + (k * height + y) * width;
      const float* const there = other.data<float>() + (mirrored[static_cast<size_t>(k)] * height + y) * width;
      float* const to = mean.data<float>() + (k * height + y) * width;
      for (int64_t x = 0; x < width; ++x) to[x] = (here[x] + there[width - 1 - x]) / 2;
    }
  }
  return mean;
}

}  // namespace vitrail::tasks
