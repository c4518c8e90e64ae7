// SPDX-License-Identifier: Apache-2.0
#pragma once
// From attention weights and gradients of a class's logit y to the relevance of tokens.
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::analysis {

// Attention in a block of one image, whose context is A v for each head.  Only the gradient by the context is needed,
// which is smaller than that by the weights: ∂y/∂A = (∂y/∂context) vᵀ.  All in f32.
struct DifferentiatedAttention {
  Tensor weights;           // A [H, N, S]: the softmax of the scores
  Tensor values;            // v [H, S, d]
  Tensor context_gradient;  // ∂y/∂context [H, N, d]
};

Tensor weight_gradients(const DifferentiatedAttention& attention);  // ∂y/∂A [H, N, S]

// The mean over heads of (∂y/∂A ⊙ A)₊ [N, S] (Chefer et al. 2021, "Generic attention-model explainability", eq. 5).
Tensor positive_relevance(const DifferentiatedAttention& attention);

// Gradient × attention (eq. 6): R = I, and R ← R + Ā R for each block, with the positive relevance Ā [N, N], in block
// order → [N, N].  Row i has the relevance of all tokens for token i.  Throws Error if there is no block.
Tensor gradient_attention(const std::vector<DifferentiatedAttention>& blocks);

// Grad-CAM on the attention of a block, as Chefer et al. 2021, "Transformer interpretability beyond attention
// visualization", compare with: the rows of the tokens that the head reads, with the mean gradient of each head as its
// weight: the mean over heads, negative values as 0.  readers [N]: the share of each token in what the head reads,
// which add up to 1.  The S − prefix patches → [S − prefix].
Tensor attention_grad_cam(const DifferentiatedAttention& attention, const Tensor& readers, int64_t prefix);

}  // namespace vitrail::analysis
