// SPDX-License-Identifier: Apache-2.0
#pragma once
// From attention weights to a picture's worth of numbers.
#include <array>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::analysis {

// Attention rollout (Abnar & Zuidema 2020): ½A + ½I per block, with A the mean over heads, multiplied from the first
// block to the last.  maps: [H, N, N] each, in block order → [N, N].
Tensor attention_rollout(const std::vector<Tensor>& maps);

// weights [H, N, N] → [N, N]
Tensor mean_over_heads(const Tensor& weights);

// What the picture shows of weights [N, N]: the class token's row over the patches, or without a class token the mean
// over the queries; prefix tokens (class, distillation, registers) are left out → [grid height, grid width].
Tensor patch_attention(const Tensor& weights, bool class_token, int64_t prefix, std::array<int64_t, 2> grid);

}  // namespace vitrail::analysis
