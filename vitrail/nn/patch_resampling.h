// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// A patch embedding's weight [D, C, h, w] for patches of another size [D, C, to[0], to[1]]: the pseudo-inverse resize
// of FlexiViT (Beyer et al. 2023, section 3.4).  With B the matrix that resizes a patch (bicubic, antialiased), the
// result is pinv(Bᵀ) w, so that ⟨B x, w'⟩ = ⟨x, w⟩ for every patch x where patches grow, and as nearly as it gets where
// they shrink.  Computed in double.  Source: timm's resample_patch_embed.
Tensor resample_patch_weight(const Tensor& weight, std::array<int64_t, 2> to);

}  // namespace vitrail::nn
