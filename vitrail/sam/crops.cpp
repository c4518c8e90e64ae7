// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/crops.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/round_up_internal.h"

namespace vitrail::sam {
namespace {

constexpr int64_t kMaxLayers = 8;  // 65,536 crops

}  // namespace

std::vector<Crop> crops_of(int64_t width, int64_t height, int64_t layers, double overlap_ratio) {
  if (width < 1 || height < 1) throw Error("crops", "an image of at least one pixel", str(width, "×", height));
  if (layers < 0 || layers > kMaxLayers) throw Error("crop_n_layers", str("0 to ", kMaxLayers), str(layers));
  if (!(overlap_ratio >= 0 && overlap_ratio <= 1)) throw Error("crop_overlap_ratio", "0 to 1", str(overlap_ratio));
  std::vector<Crop> crops{{{0, 0, width, height}, 0}};
  const auto short_side = static_cast<double>(std::min(width, height));
  for (int64_t layer = 1; layer <= layers; ++layer) {
    const int64_t n = int64_t{1} << layer;
    const auto overlap = static_cast<int64_t>(overlap_ratio * short_side * (2 / static_cast<double>(n)));
    const auto length_of = [&](int64_t side) { return ceil_div(overlap * (n - 1) + side, n); };
    const int64_t crop_width = length_of(width), crop_height = length_of(height);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const int64_t x = (crop_width - overlap) * i, y = (crop_height - overlap) * j;
        crops.push_back({{x, y, std::min(x + crop_width, width), std::min(y + crop_height, height)}, layer});
        // Rounding up can leave nothing for the last crops of a small image.
        const PixelBox& box = crops.back().box;
        if (box.x1 <= box.x0 || box.y1 <= box.y0) {
          throw Error("crop_n_layers", str("crops of at least one pixel of ", width, "×", height),
                      str("layer ", layer));
        }
      }
    }
  }
  return crops;
}

// Computed as numpy.linspace does, so that the points are equal to the last bit.
std::vector<std::array<double, 2>> point_grid(int64_t side) {
  if (side < 1) throw Error("point grid", "at least one point per side", str(side));
  const double first = 1 / (2 * static_cast<double>(side)), last = 1 - first;
  const double step = side > 1 ? (last - first) / static_cast<double>(side - 1) : 0;
  const auto at = [&](int64_t i) { return i == side - 1 && side > 1 ? last : static_cast<double>(i) * step + first; };
  std::vector<std::array<double, 2>> points;
  points.reserve(static_cast<size_t>(side * side));
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) points.push_back({at(x), at(y)});
  }
  return points;
}

}  // namespace vitrail::sam
