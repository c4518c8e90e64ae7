// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/mae/initial_params.h"

#include "vitrail/models/layer_configs_internal.h"
#include "vitrail/nn/init.h"
#include "vitrail/nn/positional_encoding.h"

namespace vitrail::models {

Initializer fixed_positions(std::array<int64_t, 2> grid) {
  return [grid](Tensor& positions, uint64_t) {
    const int64_t patches = grid[0] * grid[1], dim = positions.size(2), prefix = positions.size(1) - patches;
    positions.narrow(1, 0, prefix).copy_(Tensor::zeros({1}, positions.dtype()));
    positions.narrow(1, prefix, patches).copy_(nn::sincos_positions_2d(grid, dim).to(positions.dtype()));
  };
}

MaeInitialParams::MaeInitialParams(const MaskedAutoencoderConfig& config, ParamProvider& others)
    : grid_(own_grid(config.encoder)), others_(others) {}

Tensor MaeInitialParams::get(const std::string& path, const Shape& shape, const Initializer& init) {
  if (path.ends_with("pos_embed")) return others_.get(path, shape, fixed_positions(grid_));
  if (path.ends_with("_token")) return others_.get(path, shape, nn::init::normal(0.02));
  if (shape.rank() < 2 || !path.ends_with(".weight")) return others_.get(path, shape, init);
  const int64_t fan_out = shape[0], fan_in = shape.numel() / fan_out;
  return others_.get(path, shape, nn::init::xavier_uniform(fan_in, fan_out));
}

}  // namespace vitrail::models
