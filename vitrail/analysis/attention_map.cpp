// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/attention_map.h"

#include "vitrail/base/error.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::analysis {

Tensor attention_rollout(const std::vector<Tensor>& maps) {
  Tensor rollout;
  for (const Tensor& map : maps) {
    Tensor block = ops::mul(ops::mean(map, 0), Tensor::full({1}, 0.5));  // [H, N, N] → [N, N]
    const int64_t n = block.size(0);
    for (int64_t i = 0; i < n; ++i) block.data<float>()[i * n + i] += 0.5f;
    rollout = rollout.defined() ? ops::matmul(block, rollout) : block;
  }
  if (!rollout.defined()) throw Error("attention rollout", "the attention maps of at least one block", "none");
  return rollout;
}

Tensor mean_over_heads(const Tensor& weights) { return ops::mean(weights, 0); }

Tensor patch_attention(const Tensor& weights, std::optional<int64_t> query, int64_t prefix,
                       std::array<int64_t, 2> grid) {
  const Tensor row = query ? weights.select(0, *query) : ops::mean(weights, 0);
  return row.narrow(0, prefix, grid[0] * grid[1]).contiguous().view({grid[0], grid[1]});
}

}  // namespace vitrail::analysis
