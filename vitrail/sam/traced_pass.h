// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/models/sam/sam.h"

namespace vitrail::sam {

// One pass for a prompt of points, as Predictor composes it: the embedding of the image, the tokens of the prompt and
// its masks.  Modules report to a trace (nn/trace.h) under segment_anything's names.  images [1, 3, S, S]: the
// encoder's input; coordinates [1, N, 2] in its pixels with their N kinds.  An image encoder alone gives no masks.
models::SamMasks traced_pass(const models::Sam& sam, const Tensor& images, const Tensor& coordinates,
                             const std::vector<models::SamPoint>& kinds);

}  // namespace vitrail::sam
