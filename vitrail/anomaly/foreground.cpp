// SPDX-License-Identifier: Apache-2.0
#include "vitrail/anomaly/foreground.h"

#include <algorithm>

#include "vitrail/analysis/pca.h"
#include "vitrail/anomaly/patches.h"

namespace vitrail::anomaly {
namespace {

constexpr float kThreshold = 10;
constexpr double kBorder = 0.2, kCenterShare = 0.35;

struct PatchMask {
  int64_t rows, columns;
  std::vector<uint8_t> values;

  // The largest or the smallest value of each 3 × 3 neighbourhood inside the grid.
  PatchMask filtered(bool largest) const {
    PatchMask result = *this;
    for (int64_t y = 0; y < rows; ++y) {
      for (int64_t x = 0; x < columns; ++x) {
        uint8_t& to = result.values[static_cast<size_t>(y * columns + x)];
        for (int64_t v = std::max<int64_t>(y - 1, 0); v < std::min(y + 2, rows); ++v) {
          for (int64_t u = std::max<int64_t>(x - 1, 0); u < std::min(x + 2, columns); ++u) {
            const uint8_t value = values[static_cast<size_t>(v * columns + u)];
            to = largest ? std::max(to, value) : std::min(to, value);
          }
        }
      }
    }
    return result;
  }

  bool covers_center() const {
    const auto begin = [](int64_t size) { return static_cast<int64_t>(static_cast<double>(size) * kBorder); };
    const auto end = [](int64_t size) { return static_cast<int64_t>(static_cast<double>(size) * (1 - kBorder)); };
    int64_t inside = 0;
    for (int64_t y = begin(rows); y < end(rows); ++y) {
      for (int64_t x = begin(columns); x < end(columns); ++x) inside += values[static_cast<size_t>(y * columns + x)];
    }
    const int64_t size = (end(rows) - begin(rows)) * (end(columns) - begin(columns));
    return static_cast<double>(inside) > static_cast<double>(size) * kCenterShare;
  }
};

}  // namespace

std::vector<uint8_t> foreground_of(const Tensor& grid) {
  const Tensor rows = concatenated_layers(grid);
  if (rows.size(0) < 2) return {};
  const Tensor scores = analysis::pca_scores(analysis::fit_pca(rows, 1), rows);
  PatchMask mask{grid.size(-3), grid.size(-2), std::vector<uint8_t>(static_cast<size_t>(rows.size(0)))};
  const auto select = [&](float sign) {
    std::ranges::transform(std::span(scores.data<float>(), mask.values.size()), mask.values.begin(),
                           [&](float score) { return sign * score > kThreshold ? 1 : 0; });
  };
  select(1);
  if (!mask.covers_center()) select(-1);
  if (std::ranges::count(mask.values, 1) == 0) return {};
  return mask.filtered(true).filtered(true).filtered(false).values;
}

}  // namespace vitrail::anomaly
