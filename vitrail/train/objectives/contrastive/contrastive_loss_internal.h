// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/models/text_transformer_config.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::train {

// The contrastive loss of B pairs, f32 or f64.  images, texts [B, D] are not normalised; row i of both is a pair, and
// all others are negatives.  With x = exp(logit_scale) · cos(image, text) + logit_bias:
//   softmax (Radford et al. 2021, CLIP): the mean of the cross-entropies over texts and over images;
//   sigmoid (Zhai et al. 2023, SigLIP, arXiv 2303.15343): −Σ log σ(z · x) / B, z = 1 for pairs, −1 for others.
// logit_scale [1]; logit_bias [1], which the softmax does not read.  Differentiable in all.
Tensor contrastive_loss(const Tensor& images, const Tensor& texts, const Tensor& logit_scale, const Tensor& logit_bias,
                        models::DualLoss loss);

}  // namespace vitrail::train
