// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// Resizes a patch embedding's weight [D, C, h, w] to [D, C, to[0], to[1]] with FlexiViT's pseudo-inverse resize (Beyer
// et al. 2023, section 3.4).  B is the matrix that resizes a patch (bicubic, antialiased), and w' = pinv(Bᵀ) w.  If
// patches grow, ⟨B x, w'⟩ = ⟨x, w⟩ for every patch x; if they shrink, w' is the least-squares solution.
// Computed in double.  Source: timm's resample_patch_embed.  Throws Error for a weight that is not 4-dimensional.
Tensor resample_patch_weight(const Tensor& weight, std::array<int64_t, 2> to);

}  // namespace vitrail::nn
