// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention scores from queries and keys, in f32: what the page computes from its arrays.
#include "vitrail/models/vision_transformer_config.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::explain {

double attention_scale(const models::VisionTransformerConfig& config);

// scale · q kᵀ + bias.  q, k [1, H, N, d]; bias [1, H, N, N] or undefined → [1, H, N, N].
Tensor attention_scores(const Tensor& q, const Tensor& k, const Tensor& bias, double scale);

// The largest |Σ − 1| over the rows of softmax weights [..., M].
double row_sum_deviation(const Tensor& weights);

}  // namespace vitrail::explain
