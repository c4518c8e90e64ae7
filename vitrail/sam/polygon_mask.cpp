// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/polygon_mask.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "vitrail/base/error.h"

namespace vitrail::sam {
namespace {

constexpr double kScale = 5;  // the reference walks along the boundary on a grid of fifths of a pixel

struct GridPoint {
  int64_t x = 0, y = 0;
};

// The grid points from one corner to the next, both included.
void walk(GridPoint from, GridPoint to, std::vector<GridPoint>& points) {
  const int64_t dx = std::abs(to.x - from.x), dy = std::abs(to.y - from.y), steps = std::max(dx, dy);
  const bool along_x = dx >= dy, backwards = along_x ? from.x > to.x : from.y > to.y;
  if (backwards) std::swap(from, to);
  const int64_t rise = along_x ? to.y - from.y : to.x - from.x;
  const double slope = steps == 0 ? 0 : static_cast<double>(rise) / static_cast<double>(steps);
  for (int64_t step = 0; step <= steps; ++step) {
    const int64_t t = backwards ? steps - step : step;
    // Truncates, as the reference does.
    const auto other =
        static_cast<int64_t>(static_cast<double>(along_x ? from.y : from.x) + slope * static_cast<double>(t) + 0.5);
    points.push_back(along_x ? GridPoint{from.x + t, other} : GridPoint{other, from.y + t});
  }
}

std::vector<GridPoint> boundary(std::span<const double> corners) {
  std::vector<GridPoint> grid, points;
  for (size_t i = 0; i < corners.size(); i += 2) {
    grid.push_back(
        {static_cast<int64_t>(kScale * corners[i] + 0.5), static_cast<int64_t>(kScale * corners[i + 1] + 0.5)});
  }
  for (size_t i = 0; i < grid.size(); ++i) walk(grid[i], grid[(i + 1) % grid.size()], points);
  return points;
}

// The positions in column-major order at which the boundary crosses the centre line of a column.
std::vector<int64_t> crossings(const std::vector<GridPoint>& points, int64_t width, int64_t height) {
  std::vector<int64_t> positions;
  for (size_t i = 1; i < points.size(); ++i) {
    const GridPoint &now = points[i], &before = points[i - 1];
    if (now.x == before.x) continue;
    const double column = (static_cast<double>(now.x < before.x ? now.x : now.x - 1) + 0.5) / kScale - 0.5;
    if (std::floor(column) != column || column < 0 || column > static_cast<double>(width - 1)) continue;
    const double row = (static_cast<double>(std::min(now.y, before.y)) + 0.5) / kScale - 0.5;
    const double limited = std::ceil(std::clamp(row, 0.0, static_cast<double>(height)));
    positions.push_back(static_cast<int64_t>(column) * height + static_cast<int64_t>(limited));
  }
  std::ranges::sort(positions);
  return positions;
}

}  // namespace

void check_polygon(std::span<const double> corners, int64_t width, int64_t height, const std::string& where) {
  if (corners.size() < 6 || corners.size() % 2 != 0) {
    throw Error(where, "a polygon x, y, … of at least 3 corners", str(corners.size(), " numbers"));
  }
  for (size_t i = 0; i < corners.size(); ++i) {
    const auto side = static_cast<double>(i % 2 == 0 ? width : height);
    if (!(corners[i] >= -side && corners[i] <= 2 * side)) {
      throw Error(where, str("corners of a polygon in the image of ", width, "×", height), str(corners[i]));
    }
  }
}

Rle polygon_mask(std::span<const double> corners, int64_t width, int64_t height, const std::string& where) {
  check_polygon(corners, width, height, where);
  Rle rle{width, height, {}};
  std::vector<int64_t> positions = crossings(boundary(corners), width, height);
  positions.push_back(width * height);
  // Two crossings at one position leave no run between them.
  int64_t last = 0;
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto run = static_cast<uint32_t>(positions[i] - last);
    last = positions[i];
    if (run > 0 || i == 0) {
      rle.counts.push_back(run);
    } else if (++i < positions.size()) {
      rle.counts.back() += static_cast<uint32_t>(positions[i] - last);
      last = positions[i];
    }
  }
  return rle;
}

}  // namespace vitrail::sam
