// SPDX-License-Identifier: Apache-2.0
#pragma once
// From attention weights to maps that can be displayed.
#include <array>
#include <optional>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::analysis {

// Attention rollout (Abnar & Zuidema 2020): the matrix product of ½A + ½I over all blocks, with A the mean over
// heads.  maps: [H, N, N] each, in block order → [N, N].  Throws Error if `maps` is empty.
Tensor attention_rollout(const std::vector<Tensor>& maps);

// weights [H, N, N] → [N, N]
Tensor mean_over_heads(const Tensor& weights);

// The attention to each patch in weights [N, N]: the row of token `query`, or the mean over all queries if none is
// given. The `prefix` leading tokens (class, distillation, registers) are dropped → [grid height, grid width].
Tensor patch_attention(const Tensor& weights, std::optional<int64_t> query, int64_t prefix,
                       std::array<int64_t, 2> grid);

}  // namespace vitrail::analysis
