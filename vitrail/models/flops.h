// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/models/vision_transformer.h"

namespace vitrail::models {

// Floating-point operations of the model's GEMMs and attention for images [B, C, H, W], as papers count them: every
// token goes through every block, and a multiply-add counts two.
double forward_flops(const VisionTransformer& model, const Shape& images);

}  // namespace vitrail::models
