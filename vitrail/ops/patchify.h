// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// image [B, C, H, W] → [B, (H/P)(W/P), C·P·P]: patches in row-major order, the elements of a patch in (c, y, x) order.
// So a linear layer with a convolution's weight [D, C·P·P] is the convolution with kernel = stride = P.  The remainder
// of H and W is dropped.  Differentiable.  Throws Error for images smaller than a patch.
Tensor patchify(const Tensor& image, int64_t patch_height, int64_t patch_width);

}  // namespace vitrail::ops
