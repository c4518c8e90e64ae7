// SPDX-License-Identifier: Apache-2.0
#pragma once
// Giving each channel that the int8 product reads its part of the 255 steps.
#include <vector>

#include "vitrail/models/vision_transformer.h"

namespace vitrail::quantize {

// Single channels whose activations are large leave few of the 255 steps to the others.  The model computes what it
// computed, but for rounding, after this:
//  - The values of each attention head are turned by an orthogonal matrix and the weights that read them turned back,
//    so that each channel has a part of all (Ashkboos et al. 2024, "QuaRot", section 4).
//  - The channels that a LayerNorm gives out and those of the values are divided, and the weights that read them
//    multiplied, by what rounding loses the least with (smoothing_factors.h).
// images: batches [B, C, H, W].
void smooth_activations(models::VisionTransformer& model, const std::vector<Tensor>& images);

}  // namespace vitrail::quantize
