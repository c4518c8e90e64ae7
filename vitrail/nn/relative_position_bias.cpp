// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/relative_position_bias.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "vitrail/nn/init.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/embedding.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::nn {
namespace {

using Grid = std::array<int64_t, 2>;
using Weights = std::vector<double>;  // [to, from]: row i has the weights of the i-th new value

constexpr int64_t kClassRows = 3;

// The extents of the table's grid of distances.
Grid distances(const Grid& grid) { return {2 * grid[0] - 1, 2 * grid[1] - 1}; }

Weights bilinear_weights(int64_t from, int64_t to) {
  Weights weights(static_cast<size_t>(to * from), 0.0);
  for (int64_t i = 0; i < to; ++i) {
    const double ratio = static_cast<double>(from) / static_cast<double>(to);
    const double at = std::max((static_cast<double>(i) + 0.5) * ratio - 0.5, 0.0);
    const int64_t first = std::min(static_cast<int64_t>(at), from - 1), second = std::min(first + 1, from - 1);
    weights[i * from + first] += 1 - (at - static_cast<double>(first));
    weights[i * from + second] += at - static_cast<double>(first);
  }
  return weights;
}

// The positions of `from` values: 0, ±1, ±(1 + q), ±(1 + q + q²), …, with a ratio q in [1.01, 1.5] by which the
// outermost position comes nearest to that of the outermost of `to` values with distances of 1.
Weights geometric_positions(int64_t from, int64_t to) {
  const int64_t side = from / 2;
  double low = 1.01, high = 1.5, q = low;
  while (high - low > 1e-6) {
    q = (low + high) / 2;
    const double outermost = (1 - std::pow(q, static_cast<double>(side))) / (1 - q);
    (outermost > static_cast<double>(to / 2) ? high : low) = q;
  }
  Weights positions(static_cast<size_t>(from), 0.0);
  double at = 1;
  for (int64_t i = 0; i < side; ++i) {
    positions[side + 1 + i] = at;
    positions[side - 1 - i] = -at;
    at += std::pow(q, static_cast<double>(i + 1));
  }
  return positions;
}

Weights geometric_weights(int64_t from, int64_t to) {
  const Weights positions = geometric_positions(from, to);
  Weights weights(static_cast<size_t>(to * from), 0.0);
  for (int64_t i = 0; i < to; ++i) {
    const double at = std::clamp(static_cast<double>(i - to / 2), positions.front(), positions.back());
    const auto above = std::lower_bound(positions.begin(), positions.end(), at);
    const int64_t second = above - positions.begin(), first = std::max<int64_t>(second - 1, 0);
    const double distance = positions[second] - positions[first];
    const double share = distance > 0 ? (at - positions[first]) / distance : 0;
    weights[i * from + first] += 1 - share;
    weights[i * from + second] += share;
  }
  return weights;
}

Tensor resampling_matrix(int64_t from, int64_t to, RelativePositionResampling resampling, DType dtype) {
  const bool geometric = resampling == RelativePositionResampling::geometric;
  const Weights weights = geometric ? geometric_weights(from, to) : bilinear_weights(from, to);
  const Tensor matrix = Tensor::empty({to, from}, DType::f64);
  std::copy(weights.begin(), weights.end(), matrix.data<double>());
  return matrix.to(dtype);
}

// table [(2h − 1)·(2w − 1) + 3, H] of one grid → of another.  Both resamplings are products of one along each axis.
Tensor resampled(const Tensor& table, const Grid& from, const Grid& to, RelativePositionResampling resampling) {
  const Grid old = distances(from), size = distances(to);
  const int64_t heads = table.size(1), count = old[0] * old[1];
  const Tensor rows = resampling_matrix(old[0], size[0], resampling, table.dtype());
  const Tensor columns = resampling_matrix(old[1], size[1], resampling, table.dtype());
  Tensor values = ops::contiguous(table.narrow(0, 0, count)).view({old[0], old[1] * heads});
  values = ops::matmul(rows, values).view({size[0], old[1], heads});
  values = ops::matmul(ops::contiguous(columns.unsqueeze(0).expand({size[0], size[1], old[1]})), values);
  return ops::cat({values.view({size[0] * size[1], heads}), table.narrow(0, count, kClassRows)}, 0);
}

// The row of the table for each pair of tokens [1 + N, 1 + N].
Tensor table_rows(const Grid& grid) {
  const Grid size = distances(grid);
  const int64_t patches = grid[0] * grid[1], tokens = patches + 1, class_rows = size[0] * size[1];
  const Tensor index = Tensor::empty({tokens, tokens}, DType::i64);
  int64_t* at = index.data<int64_t>();
  for (int64_t query = 0; query < tokens; ++query) {
    for (int64_t key = 0; key < tokens; ++key, ++at) {
      if (query == 0 || key == 0) {
        *at = class_rows + (key != 0 ? 0 : query != 0 ? 1 : 2);
        continue;
      }
      const int64_t dy = (query - 1) / grid[1] - (key - 1) / grid[1], dx = (query - 1) % grid[1] - (key - 1) % grid[1];
      *at = (dy + grid[0] - 1) * size[1] + dx + grid[1] - 1;
    }
  }
  return index;
}

}  // namespace

RelativePositionBias::RelativePositionBias(const RelativePositionBiasConfig& config, const ParamSource& params)
    : Module(params.path()), config_(config) {
  const Grid size = distances(config.grid);
  table_ =
      params.get("relative_position_bias_table", {size[0] * size[1] + kClassRows, config.num_heads}, init::zeros());
}

Tensor RelativePositionBias::forward(std::array<int64_t, 2> grid) const {
  const Tensor table = grid == config_.grid ? table_ : resampled(table_, config_.grid, grid, config_.resampling);
  const Tensor bias = ops::embedding(table_rows(grid), table);  // [1 + N, 1 + N, H]
  return ops::contiguous(bias.permute({2, 0, 1})).unsqueeze(0);
}

void RelativePositionBias::visit(Visitor& visitor) { visitor.parameter("relative_position_bias_table", table_); }

}  // namespace vitrail::nn
