// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/outliers.h"

#include <algorithm>
#include <cmath>

#include "vitrail/analysis/nearest.h"
#include "vitrail/base/error.h"

namespace vitrail::analysis {

std::vector<NeighborDistance> neighbor_distances(const Tensor& rows, int64_t k) {
  const auto neighbors = nearest_rows(rows, TensorRows(rows), k + 1);  // a row is among its own
  std::vector<NeighborDistance> distances(neighbors.size());
  for (size_t i = 0; i < neighbors.size(); ++i) {
    NeighborDistance& distance = distances[i];
    int64_t count = 0;
    for (const Neighbor& neighbor : neighbors[i]) {
      if (neighbor.row == static_cast<int64_t>(i) || count == k) continue;
      if (count++ == 0) distance.nearest = neighbor.row;
      distance.mean += 1 - static_cast<double>(neighbor.score);
    }
    if (count > 0) distance.mean /= static_cast<double>(count);
  }
  return distances;
}

double outer_fence(std::vector<double> values) {
  if (values.empty()) throw Error("outer fence", "at least one value", "none");
  std::ranges::sort(values);
  const auto quantile = [&](double q) {
    const double position = q * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(position);
    const size_t above = std::min(below + 1, values.size() - 1);
    return std::lerp(values[below], values[above], position - static_cast<double>(below));
  };
  const double first = quantile(0.25), third = quantile(0.75);
  return third + 3 * (third - first);
}

}  // namespace vitrail::analysis
