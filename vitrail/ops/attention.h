// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

struct AttentionResult {
  Tensor out;      // [B, T, H·d], heads merged
  Tensor weights;  // [B, H, T, S] after softmax; undefined unless asked for; passes no gradient on
};

// softmax(scale · q kᵀ + bias) v (Vaswani et al. 2017, eq. 1).  q [B, H, T, d], k and v [B, H, S, d], any strides with
// a contiguous last axis; bias broadcasts to [B, H, T, S] and is added to the scaled scores (−∞ masks), or undefined.
// A query whose keys are all masked gives zero weights and zeros.  Without need_weights, [B, H, T, S] is never stored:
// the backward computes the weights again.  Differentiable.
AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, double scale, const Tensor& bias = {},
                          bool need_weights = false);

// The same on a fused projection: qkv [B, N, 3·H·d] → [B, N, H·d].  Its gradient is written where it belongs, instead
// of being joined from three.
Tensor self_attention(const Tensor& qkv, int64_t heads, double scale);

// [B, H, N, d] → [B, N, H·d]
Tensor merge_heads(const Tensor& x);

}  // namespace vitrail::ops
