// SPDX-License-Identifier: Apache-2.0
#include "vitrail/anomaly/patches.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "vitrail/analysis/knn.h"
#include "vitrail/analysis/nearest.h"
#include "vitrail/anomaly/foreground.h"
#include "vitrail/base/error.h"

namespace vitrail::anomaly {
namespace {

constexpr int64_t kSupport = 9;         // neighbours of the nearest patch in PatchCore's weight, with itself
constexpr double kHighestShare = 0.01;  // AnomalyDINO's score is the mean over this share of the patches

// Means over the patches of a 3 × 3 neighbourhood that are in the grid [rows, columns, D].
void pool_neighborhoods(const float* grid, int64_t rows, int64_t columns, int64_t dim, int64_t stride, float* out) {
  for (int64_t y = 0; y < rows; ++y) {
    for (int64_t x = 0; x < columns; ++x) {
      float* const mean = out + (y * columns + x) * stride;
      std::fill(mean, mean + dim, 0.F);
      int64_t count = 0;
      for (int64_t v = std::max<int64_t>(y - 1, 0); v < std::min(y + 2, rows); ++v) {
        for (int64_t u = std::max<int64_t>(x - 1, 0); u < std::min(x + 2, columns); ++u, ++count) {
          const float* const patch = grid + (v * columns + u) * dim;
          for (int64_t i = 0; i < dim; ++i) mean[i] += patch[i];
        }
      }
      for (int64_t i = 0; i < dim; ++i) mean[i] /= static_cast<float>(count);
    }
  }
}

// One more column: `of_row` of each row.
Tensor with_column(const Tensor& rows, const std::function<float(const float*)>& of_row) {
  const int64_t n = rows.size(0), width = rows.size(1);
  const Tensor from = rows.contiguous(), out = Tensor::empty({n, width + 1});
  for (int64_t i = 0; i < n; ++i) {
    const float* const row = from.data<float>() + i * width;
    float* const to = out.data<float>() + i * (width + 1);
    std::copy(row, row + width, to);
    to[width] = of_row(row);
  }
  return out;
}

float half_square(const float* row, int64_t width) {
  return static_cast<float>(std::inner_product(row, row + width, row, 0.0) / 2);
}

float distance_of(const float* a, const float* b, int64_t width) {
  double sum = 0;
  for (int64_t i = 0; i < width; ++i) sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  return static_cast<float>(std::sqrt(sum));
}

double mean_of_highest(std::vector<float> distances) {
  const auto count = std::max<int64_t>(1, std::llround(kHighestShare * static_cast<double>(distances.size())));
  std::ranges::partial_sort(distances, distances.begin() + count, std::greater<>());
  return std::accumulate(distances.begin(), distances.begin() + count, 0.0) / static_cast<double>(count);
}

}  // namespace

infer::Request feature_request(const BankOptions& options) {
  return {.output = infer::Output::features, .features = {.tokens = infer::Tokens::grid, .layers = options.layers}};
}

Tensor concatenated_layers(const Tensor& grid) {
  const Tensor layers = grid.shape().rank() == 3 ? grid.unsqueeze(0) : grid;
  const int64_t count = layers.size(0), dim = layers.size(3);
  return layers.permute({1, 2, 0, 3}).contiguous().view({layers.size(1) * layers.size(2), count * dim});
}

Tensor patch_features(const Tensor& grid, Method method) {
  if (method == Method::anomalydino) return analysis::normalized_rows(concatenated_layers(grid));
  const Tensor layers = (grid.shape().rank() == 3 ? grid.unsqueeze(0) : grid).contiguous();
  const int64_t count = layers.size(0), rows = layers.size(1), columns = layers.size(2), dim = layers.size(3);
  const Tensor features = Tensor::empty({rows * columns, count * dim});
  for (int64_t layer = 0; layer < count; ++layer)
    pool_neighborhoods(layers.data<float>() + layer * rows * columns * dim, rows, columns, dim, count * dim,
                       features.data<float>() + layer * dim);
  return features;
}

Patches patches_of(const Tensor& grid, const BankOptions& options) {
  Patches patches{patch_features(grid, options.method)};
  if (options.mask != Mask::none) patches.foreground = foreground_of(grid);
  return patches;
}

PatchSearch::PatchSearch(const Tensor& patches, Method method) : patches_(patches.contiguous()), method_(method) {
  const int64_t width = patches_.size(1);
  rows_ = std::make_unique<analysis::TensorRows>(
      method == Method::anomalydino ? patches_ : with_column(patches_, [=](const float* row) {
        return -half_square(row, width);
      }));
}

PatchDistances PatchSearch::distances(const Patches& image) const {
  const Tensor& features = image.features;
  const auto drop_background = [&image](std::vector<float>& distances) {
    for (size_t i = 0; i < image.foreground.size(); ++i) distances[i] *= static_cast<float>(image.foreground[i]);
  };
  if (features.size(1) != width()) throw Error("patches", str("features of ", width()), str(features.size(1)));
  PatchDistances result;
  if (method_ == Method::anomalydino) {
    for (const auto& nearest : analysis::nearest_rows(features, *rows_, 1))
      result.distances.push_back(std::max(0.F, 1 - nearest.front().score));
    drop_background(result.distances);
    result.score = mean_of_highest(result.distances);
    return result;
  }
  std::vector<int64_t> rows;
  const Tensor queries = with_column(features, [](const float*) { return 1.F; });
  for (const auto& nearest : analysis::nearest_rows(queries, *rows_, 1)) {
    const float* const patch = features.data<float>() + std::ssize(rows) * width();
    rows.push_back(nearest.front().row);
    result.distances.push_back(distance_of(patch, patches_.data<float>() + rows.back() * width(), width()));
  }
  drop_background(result.distances);
  result.score = patchcore_score(features, result.distances, rows);
  return result;
}

// Equation 7: (1 − softmax over the support of the distances to its patches, at the nearest one) · distance.
double PatchSearch::patchcore_score(const Tensor& features, const std::vector<float>& distances,
                                    const std::vector<int64_t>& nearest) const {
  const auto farthest = std::ranges::max_element(distances) - distances.begin();
  const double distance = distances[static_cast<size_t>(farthest)];
  const int64_t row = nearest[static_cast<size_t>(farthest)];
  const float* const patch = features.data<float>() + farthest * width();
  const Tensor query = with_column(patches_.narrow(0, row, 1), [](const float*) { return 1.F; });
  const auto support = analysis::nearest_rows(query, *rows_, kSupport);
  double sum = 0;
  for (const analysis::Neighbor& neighbor : support.front())
    sum += std::exp(distance_of(patch, patches_.data<float>() + neighbor.row * width(), width()) - distance);
  return (1 - 1 / sum) * distance;
}

}  // namespace vitrail::anomaly
